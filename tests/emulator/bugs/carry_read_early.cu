// Each warp adds the carries of the warps before it, and nothing waits until these have been written.
// launch: <<<1, 128>>>
// argument: x read-only f32 128 random
// argument: y output f32 128
extern "C" __global__ void carry_read_early(const float* x, float* y) {
  __shared__ float carries[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = x[threadIdx.x];
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) carries[warp] = sum;  // BUG: race
  __syncwarp();
  for (int before = 0; before < warp; ++before) {
    sum += carries[before];  // BUG: race; ALSO: uninitialised
  }
  y[threadIdx.x] = sum;  // ALSO: uninitialised
}
