// Columns are coded as 16-bit distances from a base and decoded in 16 bits, which the last columns do not fit.
// launch: <<<1, 32>>>
// argument: deltas read-only u16 32 iota 100
// argument: x read-only f32 70000 random
// argument: y output f32 32
// argument: base u16 value 65420
extern "C" __global__ void column_delta_wraps(const unsigned short* deltas, const float* x, float* y, unsigned short base) {
  const unsigned short column = base + deltas[threadIdx.x];  // BUG: address-overflow
  y[threadIdx.x] = x[column];                                // BUG: address-overflow
}
