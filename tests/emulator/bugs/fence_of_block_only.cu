// The fence before a flag that another block polls reaches no further than its own block.
// launch: <<<4, 32>>>
// argument: x read-only f32 128 random
// argument: sums output f32 4
// argument: flags writable i32 4 zero
// argument: y output f32 4
extern "C" __global__ void fence_of_block_only(const float* x, float* sums, int* flags, float* y) {
  const int block = blockIdx.x;
  float sum = x[block * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x != 0) return;
  if (block > 0) {
    while (*(volatile int*)&flags[block - 1] == 0) {
    }
    __threadfence_block();
    sum += sums[block - 1];  // BUG: race
  }
  sums[block] = sum;  // BUG: race
  __threadfence_block();
  *(volatile int*)&flags[block] = 1;
  y[block] = sum;
}
