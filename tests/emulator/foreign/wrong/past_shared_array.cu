// The sum of a row is written one element past its array, where another one lies.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[64], unused[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  unused[threadIdx.x] = row;
  __syncthreads();
  float sum = 0;
  if (row < n) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  }
  sums[threadIdx.x + 1] = sum;  // BUG
  __syncthreads();
  if (row < n) y[row] = sums[threadIdx.x + 1] + 0 * unused[(row + 9) % 64];  // BUG
}
