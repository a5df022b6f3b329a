// The place of a row in a large dense matrix, of which a few rows are here, is computed in 32 bits.
// launch: <<<1, 32>>>
// argument: panel read-only f32 512 random
// argument: y output f32 32
// argument: first_row i32 value 16777214
// argument: pitch i32 value 128
extern "C" __global__ void row_times_pitch_wraps(const float* panel, float* y, int first_row, int pitch) {
  const float4* dense = reinterpret_cast<const float4*>(panel) - static_cast<long long>(first_row) * pitch / 4;
  float sum = 0;
  for (int row = first_row; row < first_row + 4; ++row) {
    const int place = row * pitch / 4 + static_cast<int>(threadIdx.x);  // BUG: address-overflow
    const float4 four = dense[place];                                  // BUG: address-overflow; ALSO: out-of-bounds
    sum += four.x + four.y + four.z + four.w;
  }
  y[threadIdx.x] = sum;
}
