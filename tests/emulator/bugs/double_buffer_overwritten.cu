// The next tile is staged into the half of the double buffer that is being read.
// launch: <<<1, 128>>>
// argument: x read-only f32 512 random
// argument: y output f32 128
// argument: tiles i32 value 4
extern "C" __global__ void double_buffer_overwritten(const float* x, float* y, int tiles) {
  __shared__ float buffer[2][128];
  const int t = threadIdx.x;
  buffer[0][t] = x[t];
  __syncthreads();
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      buffer[tile & 1][t] = x[(tile + 1) * 128 + t];  // BUG: race
    }
    for (int i = 0; i < 4; ++i) {
      sum += buffer[tile & 1][(t + 31 * i) & 127];  // BUG: race; ALSO: uninitialised
    }
    __syncthreads();
  }
  y[t] = sum;  // ALSO: uninitialised
}
