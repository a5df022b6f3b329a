// A tile of x is read before the other warps have staged their parts of it.
// launch: <<<2, 128>>>
// argument: x read-only f32 256 random
// argument: y output f32 256
extern "C" __global__ void missing_barrier_after_staging(const float* x, float* y) {
  __shared__ float tile[128];
  const int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = x[i];                          // BUG: race
  y[i] = tile[threadIdx.x] + tile[127 - threadIdx.x];  // BUG: race; ALSO: uninitialised
}
