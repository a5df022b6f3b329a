// A block waits for a flag that the block before it does not set when it has nothing to do.
// launch: <<<2, 1>>>
// argument: lengths read-only i32 2 zero
// argument: flags writable i32 2 zero
// argument: y output f32 2
extern "C" __global__ void flag_never_set(const int* lengths, int* flags, float* y) {
  const int block = blockIdx.x;
  while (block > 0 && *(volatile int*)&flags[block - 1] == 0) {  // BUG: endless, over-budget, deadlock
  }
  y[block] = lengths[block];
  if (lengths[block] > 0) {
    __threadfence();
    *(volatile int*)&flags[block] = 1;
  }
}
