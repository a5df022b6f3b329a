// Warps take rows from a queue; the last block sets it back for the next launch.
// launch: spmv<<<12, 128>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int next_row;
__device__ unsigned ended;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int lane = threadIdx.x % 32;
  while (true) {
    int row = 0;
    if (lane == 0) row = atomicAdd(&next_row, 1);
    row = __shfl_sync(0xffffffffu, row, 0);
    if (row >= n) break;
    float sum = 0;
    for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1) {
      __threadfence();
      next_row = 0;
    }
  }
}
