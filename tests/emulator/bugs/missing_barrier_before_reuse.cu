// The next tile of x overwrites the last one while other warps still read it.
// launch: <<<1, 128>>>
// argument: x read-only f32 512 random
// argument: y output f32 128
// argument: tiles i32 value 4
extern "C" __global__ void missing_barrier_before_reuse(const float* x, float* y, int tiles) {
  __shared__ float tile[128];
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = x[t * 128 + threadIdx.x];  // BUG: race
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      sum += tile[(threadIdx.x + 17 * i) & 127];  // BUG: race
    }
  }
  y[threadIdx.x] = sum;
}
