// It says when an index is outside of the matrix, which none is.
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
extern "C" __device__ int printf(const char*, ...);
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int m) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    if (ci[i] < 0 || ci[i] >= m) printf("entry %d of row %d: column %d\n", i, row, ci[i]);
    sum += va[i] * x[ci[i]];
  }
  y[row] = sum;
}
