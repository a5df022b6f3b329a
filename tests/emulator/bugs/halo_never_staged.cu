// A tile is read with a halo of one element, which no thread has staged.
// launch: <<<1, 64>>>
// argument: x read-only f32 65 random
// argument: y output f32 64
extern "C" __global__ void halo_never_staged(const float* x, float* y) {
  __shared__ float tile[65];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  y[t] = tile[t] + tile[t + 1];  // BUG: uninitialised
}
