// The tile has room for a halo on one side, and is read on both.
// launch: <<<1, 64>>>
// argument: x read-only f32 64 random
// argument: y output f32 64
extern "C" __global__ void past_shared_memory(const float* x, float* y) {
  __shared__ float tile[65];
  const int t = threadIdx.x;
  tile[t + 1] = x[t];
  if (t == 0) tile[0] = 0;
  __syncthreads();
  y[t] = tile[t] - 2 * tile[t + 1] + tile[t + 2];  // BUG: out-of-bounds
}
