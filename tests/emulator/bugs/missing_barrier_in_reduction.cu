// The steps of a reduction in shared memory follow each other without a barrier.
// launch: <<<2, 256>>>
// argument: x read-only f32 512 random
// argument: y output f32 2
extern "C" __global__ void missing_barrier_in_reduction(const float* x, float* y) {
  __shared__ float partial[256];
  const int t = threadIdx.x;
  partial[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) {
      const float other = partial[t + step];  // BUG: race
      partial[t] += other;                    // BUG: race
    }
  }
  if (t == 0) y[blockIdx.x] = partial[0];
}
