static constexpr unsigned int WARPS = 4;
static constexpr unsigned int THREADS = WARPS * 32;
static constexpr unsigned int ROWS = THREADS / 32;
// launch: spmv<<<(n + ROWS - 1) / ROWS, THREADS>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (lane == 0) y[row] = sum;
}
