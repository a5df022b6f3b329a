// Groups of eight lanes draw rows, and take what lane 0 of the warp holds, which is in another group's mask: they may
// draw for ever.
// launch: spmv<<<8, 128>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int next_row, blocks_done;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int lane = threadIdx.x % 32, vector = lane % 8;
  const unsigned mask = 0xffu << (lane - vector);
  for (;;) {
    int row = 0;
    if (vector == 0) row = atomicAdd(&next_row, 1);
    row = __shfl_sync(mask, row, 0);  // BUG
    if (row >= n) break;
    float sum = 0;
    for (int i = rp[row] + vector; i < rp[row + 1]; i += 8) sum += va[i] * x[ci[i]];
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(mask, sum, step, 8);
    if (vector == 0) y[row] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&blocks_done, 1) == 7) next_row = blocks_done = 0;
}
