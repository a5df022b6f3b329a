// A row's sum is sought from the last entry of the matrix on, by a function that calls itself for each entry.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ __noinline__ float sum_of(const int* ci, const float* va, const float* x, int from, int to, int i) {
  if (i < from) return 0;
  const float rest = sum_of(ci, va, x, from, to, i - 1);  // BUG
  return i < to ? rest + va[i] * x[ci[i]] : rest;
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row < n) y[row] = sum_of(ci, va, x, rp[row], rp[row + 1], rp[n] - 1);
}
