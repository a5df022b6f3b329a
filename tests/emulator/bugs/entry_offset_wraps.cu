// The number of the first entry of a row is a 32-bit product, and the values start billions of entries before the part that is here.
// launch: <<<1, 32>>>
// argument: part read-only f32 4096 random
// argument: y output f32 32
// argument: first_row i32 value 2045222
// argument: width i32 value 2100
extern "C" __global__ void entry_offset_wraps(const float* part, float* y, int first_row, int width) {
  const float* values = part - static_cast<long long>(first_row) * width;
  const int row = first_row + threadIdx.x / 16;
  y[threadIdx.x] = values[row * width + threadIdx.x % 16];  // BUG: address-overflow; ALSO: out-of-bounds
}
