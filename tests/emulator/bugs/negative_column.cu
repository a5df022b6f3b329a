// A diagonal below the main one is checked against the right border of the matrix only.
// launch: <<<2, 64>>>
// argument: offsets read-only i32 3 iota -2
// argument: x read-only f32 128 random
// argument: y output f32 128
// argument: diagonals i32 value 3
// argument: columns i32 value 128
extern "C" __global__ void negative_column(const int* offsets, const float* x, float* y, int diagonals, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int d = 0; d < diagonals; ++d) {
    const int column = row + offsets[d];
    if (column < columns) {
      sum += x[column];  // BUG: out-of-bounds
    }
  }
  y[row] = sum;
}
