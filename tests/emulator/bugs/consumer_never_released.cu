// A warp waits for a full buffer once more often than the producer fills it.
// launch: <<<1, 64>>>
// argument: x read-only f32 96 random
// argument: y output f32 32
// argument: tiles i32 value 3
extern "C" __global__ void consumer_never_released(const float* x, float* y, int tiles) {
  __shared__ float tile[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < tiles; ++i) {
      tile[lane] = x[i * 32 + lane];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    }
  } else {
    float sum = 0;
    for (int i = 0; i <= tiles; ++i) {
      asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG: divergent-barrier, deadlock
      sum += tile[31 - lane];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
    y[lane] = sum;
  }
}
