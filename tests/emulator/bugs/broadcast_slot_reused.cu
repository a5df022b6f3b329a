// A warp passes its result on in one word of shared memory, which the next round overwrites before all have read it.
// launch: <<<1, 64>>>
// argument: x read-only f32 256 random
// argument: y output f32 256
extern "C" __global__ void broadcast_slot_reused(const float* x, float* y) {
  __shared__ float scale;
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x == 0) scale = x[round * 64];  // BUG: race
    __syncthreads();
    y[round * 64 + threadIdx.x] = x[round * 64 + threadIdx.x] * scale;  // BUG: race
  }
}
