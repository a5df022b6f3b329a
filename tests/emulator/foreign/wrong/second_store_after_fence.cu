// The first half of a row is stored before a fence, as it must be, but its carry only after that, with nothing between
// the carry and the state that says that it is there.
// launch: spmv<<<2 * ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float partial[4096];
__device__ volatile float carry[4096];
__device__ volatile unsigned state[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int half = blockIdx.x % 2, row = blockIdx.x / 2 * 32 + threadIdx.x;
  if (row >= n) return;
  const int first = rp[row], last = rp[row + 1], middle = first + (last - first) / 2;
  float sum = 0;
  for (int i = half ? middle : first; i < (half ? last : middle); ++i) sum += va[i] * x[ci[i]];
  if (half == 0) {
    partial[row] = sum / 2;
    __threadfence();
    carry[row] = sum / 2;
    state[row] = 1;
  } else {
    while (state[row] == 0) {
    }
    __threadfence();
    y[row] = sum + partial[row] + carry[row];  // BUG
    state[row] = 0;
  }
}
