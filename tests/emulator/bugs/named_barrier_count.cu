// A named barrier expects three warps, and two use it.
// launch: <<<1, 128>>>
// argument: x read-only f32 64 random
// argument: y output f32 64
extern "C" __global__ void named_barrier_count(const float* x, float* y) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if (t < 64) {
    tile[t] = x[t];
    asm volatile("bar.sync 1, 96;" ::: "memory");  // BUG: divergent-barrier, deadlock
    y[t] = tile[63 - t];
  }
}
