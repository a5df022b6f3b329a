// Blocks leave partial sums, and the last of them to finish adds these up.
// launch: <<<7, 128>>>
// argument: x read-only f32 1000 random
// argument: partial output f32 7
// argument: ticket writable u32 1 zero
// argument: y output f32 1
// argument: size i32 value 1000
// expect: y sum x
extern "C" __global__ void last_block_sums(const float* x, float* partial, unsigned* ticket, float* y, int size) {
  __shared__ float sums[4];
  __shared__ bool is_last;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) sum += x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
    __threadfence();
    is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last || threadIdx.x >= 32) return;
  float total = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffffu, total, step);
  if (threadIdx.x == 0) *y = total;
}
