// A distance in steps of a stride is computed in a signed 16-bit number, and comes out negative.
// launch: <<<1, 32>>>
// argument: steps read-only u8 32 iota 1
// argument: x read-only f32 70000 random
// argument: y output f32 32
// argument: stride i16 value 2000
extern "C" __global__ void signed_column_delta_wraps(const unsigned char* steps, const float* x, float* y, short stride) {
  const short column = steps[threadIdx.x] * stride;  // BUG: address-overflow
  y[threadIdx.x] = x[column];                        // BUG: address-overflow; ALSO: out-of-bounds
}
