// Only half of the warp is named at the point where the other half's results are taken over.
// launch: <<<1, 32>>>
// argument: x read-only f32 32 random
// argument: y output f32 16
extern "C" __global__ void warp_sync_of_half(const float* x, float* y) {
  __shared__ float partial[32];
  const int lane = threadIdx.x;
  partial[lane] = x[lane] * 2;  // BUG: race
  if (lane < 16) {
    __syncwarp(0x0000ffffu);
    y[lane] = partial[lane] + partial[lane + 16];  // BUG: race; ALSO: uninitialised
  }
}
