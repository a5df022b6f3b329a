// Some lanes of each warp wait at a barrier in a branch while the other lanes go on.
// launch: <<<1, 64>>>
// argument: x read-only f32 64 random
// argument: y output f32 64
extern "C" __global__ void barrier_for_some_lanes(const float* x, float* y) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  float sum = tile[63 - t];
  if (t % 32 < 20) {
    sum *= 2;
    __syncthreads();  // BUG: divergent-barrier, deadlock
  }
  y[t] = sum;
}
