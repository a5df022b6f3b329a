// The second half of a row waits for the first by additions of zero, and then reads the flag that it waited for.
// launch: spmv<<<2 * ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float partial[4096];
__device__ unsigned state[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int half = blockIdx.x % 2, row = blockIdx.x / 2 * 32 + threadIdx.x;
  if (row >= n) return;
  const int first = rp[row], last = rp[row + 1], middle = first + (last - first) / 2;
  float sum = 0;
  for (int i = half ? middle : first; i < (half ? last : middle); ++i) sum += va[i] * x[ci[i]];
  if (half == 0) {
    partial[row] = sum;
    __threadfence();
    *(volatile unsigned*)&state[row] = 1 + row;
  } else {
    while (atomicAdd(&state[row], 0u) == 0) {
    }
    __threadfence();
    y[row] = *(volatile unsigned*)&state[row] == 1 + row ? sum + partial[row] : -1;
    state[row] = 0;
  }
}
