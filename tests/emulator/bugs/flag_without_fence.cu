// A block waits for a flag of the block before it and then reads that block's carry, which no fence orders.
// launch: <<<3, 1>>>
// argument: x read-only f32 3 random
// argument: carry output f32 3
// argument: flags writable i32 3 zero
// argument: y output f32 3
extern "C" __global__ void flag_without_fence(const float* x, float* carry, int* flags, float* y) {
  const int block = blockIdx.x;
  float sum = x[block];
  if (block > 0) {
    while (*(volatile int*)&flags[block - 1] == 0) {
    }
    sum += carry[block - 1];  // BUG: race
  }
  carry[block] = sum;  // BUG: race
  *(volatile int*)&flags[block] = 1;
  y[block] = sum;
}
