// Rows of three entries and more are multiplied by a function whose address the table lacks.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
typedef float (*Product)(float, float);
__device__ __noinline__ float forwards(float a, float b) { return a * b; }
__device__ Product products[2] = {forwards};
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  const Product product = products[rp[row + 1] - rp[row] > 2];
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += product(va[i], x[ci[i]]);  // BUG
  y[row] = sum;
}
