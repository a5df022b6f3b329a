// Threads past the last row are not kept from scaling it.
// launch: <<<2, 64>>>
// argument: x read-only f32 100 random
// argument: diagonal read-only f32 100 random
// argument: y output f32 100
extern "C" __global__ void missing_guard(const float* x, const float* diagonal, float* y) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  y[row] = x[row] * diagonal[row];  // BUG: out-of-bounds
}
