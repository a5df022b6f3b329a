// The result is set to zero by the same launch whose other blocks already add to it.
// launch: <<<4, 64>>>
// argument: rows read-only i32 256 random 64
// argument: values read-only f32 256 random
// argument: y output f32 64
extern "C" __global__ void zeroed_in_the_same_kernel(const int* rows, const float* values, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < 64) y[i] = 0;  // BUG: race
  __syncthreads();
  atomicAdd(&y[rows[i]], values[i]);  // BUG: race; ALSO: uninitialised
}
