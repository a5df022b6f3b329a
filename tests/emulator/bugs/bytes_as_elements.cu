// A pitch in bytes is used to step through elements.
// launch: <<<1, 32>>>
// argument: dense read-only f32 256 random
// argument: y output f32 32
// argument: rows i32 value 8
// argument: pitch i32 value 128
extern "C" __global__ void bytes_as_elements(const float* dense, float* y, int rows, int pitch) {
  float sum = 0;
  for (int row = 0; row < rows; ++row) {
    sum += dense[row * pitch + threadIdx.x];  // BUG: out-of-bounds
  }
  y[threadIdx.x] = sum;
}
