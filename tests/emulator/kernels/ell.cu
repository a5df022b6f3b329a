// ELLPACK, column by column.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: columns read-only i32 ell-columns
// argument: values read-only f32 ell-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// argument: width i32 ell-width
// expect: y spmv x
extern "C" __global__ void ell(const int* columns, const float* values, const float* x, float* y, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    const int column = columns[k * rows + row];
    if (column >= 0) sum += values[k * rows + row] * x[column];
  }
  y[row] = sum;
}
