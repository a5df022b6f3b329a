// Partial sums pass from block to block by loads and stores that acquire and release.
// launch: <<<6, 32>>>
// argument: x read-only f32 192 random
// argument: carry output f32 6
// argument: flags writable u32 6 zero
// argument: y writable f32 1 zero
// expect: y sum x
extern "C" __global__ void acquire_and_release(const float* x, float* carry, unsigned* flags, float* y) {
  const int block = blockIdx.x;
  float sum = x[block * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x != 0) return;
  if (block > 0) {
    unsigned flag;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(flags + block - 1) : "memory");
    } while (flag == 0);
    sum += carry[block - 1];
  }
  carry[block] = sum;
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flags + block), "r"(1u) : "memory");
  if (block == gridDim.x - 1) *y = sum;
}
