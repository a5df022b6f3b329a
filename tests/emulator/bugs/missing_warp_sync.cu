// The lanes of a warp reduce in shared memory as if they were still in lockstep.
// launch: <<<1, 64>>>
// argument: x read-only f32 64 random
// argument: y output f32 2
extern "C" __global__ void missing_warp_sync(const float* x, float* y) {
  __shared__ float partial[64];
  const int t = threadIdx.x, lane = t % 32;
  partial[t] = x[t];
  __syncthreads();
  for (int step = 16; step > 0; step /= 2) {
    if (lane < step) {
      const float other = partial[t + step];  // BUG: race
      partial[t] += other;                    // BUG: race
    }
  }
  if (lane == 0) y[t / 32] = partial[t];
}
