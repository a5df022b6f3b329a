// The last block sums the partial results of all blocks, which nothing has made visible to it.
// launch: <<<6, 64>>>
// argument: x read-only f32 384 random
// argument: partial output f32 6
// argument: ticket writable u32 1 zero
// argument: y output f32 1
extern "C" __global__ void missing_fence_before_ticket(const float* x, float* partial, unsigned* ticket, float* y) {
  __shared__ float sums[2];
  float sum = x[blockIdx.x * 64 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0] + sums[1];  // BUG: race
    if (atomicAdd(ticket, 1u) == gridDim.x - 1) {
      float total = 0;
      for (int block = 0; block < gridDim.x; ++block) {
        total += partial[block];  // BUG: race
      }
      y[0] = total;
    }
  }
}
