// A warp fills a tile and another uses it, with a named barrier for full and one for empty.
// launch: <<<1, 64>>>
// argument: x read-only f32 256 random
// argument: y output f32 1
// argument: tiles i32 value 8
// expect: y sum x
extern "C" __global__ void producer_and_consumer(const float* x, float* y, int tiles) {
  __shared__ float tile[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < tiles; ++i) {
      if (i > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
      tile[lane] = x[i * 32 + lane];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
  } else {
    float sum = 0;
    for (int i = 0; i < tiles; ++i) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += tile[31 - lane];
      if (i + 1 < tiles) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) *y = sum;
  }
}
