// Two warps wait at two named barriers in opposite order.
// launch: <<<1, 64>>>
// argument: x read-only f32 64 random
// argument: y output f32 64
extern "C" __global__ void barriers_crossed(const float* x, float* y) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[t];
  if (t < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG: deadlock
    asm volatile("bar.sync 2, 64;" ::: "memory");  // BUG: deadlock
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");  // BUG: deadlock
    asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG: deadlock
  }
  y[t] = tile[63 - t];
}
