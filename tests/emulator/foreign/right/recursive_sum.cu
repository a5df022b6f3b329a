// A row's entries are summed by halves: the function calls itself.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ __noinline__ float sum_of(const int* ci, const float* va, const float* x, int from, int to) {
  if (to <= from) return 0;
  if (to - from == 1) return va[from] * x[ci[from]];
  const int middle = from + (to - from) / 2;
  return sum_of(ci, va, x, from, middle) + sum_of(ci, va, x, middle, to);
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row < n) y[row] = sum_of(ci, va, x, rp[row], rp[row + 1]);
}
