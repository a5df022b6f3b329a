// Sums in shared memory are added to before anyone has set them to zero.
// launch: <<<2, 64>>>
// argument: rows read-only i32 128 random 16
// argument: values read-only f32 128 random
// argument: y output f32 32
extern "C" __global__ void accumulators_not_zeroed(const int* rows, const float* values, float* y) {
  __shared__ float sums[16];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  atomicAdd(&sums[rows[i]], values[i]);  // BUG: uninitialised
  __syncthreads();
  if (t < 16) y[blockIdx.x * 16 + t] = sums[t];  // BUG: uninitialised
}
