// SpMM in double precision, with blocks of two dimensions.
// launch: <<<dim3(25, 1), dim3(8, 4)>>>
// matrix: rows=98 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f64 csr-values
// argument: x read-only f64 720 random
// argument: y output f64 784
// argument: rows i32 value 98
// expect: y spmm x 8
extern "C" __global__ void double_spmm(const int* row_ptr, const int* columns, const double* values, const double* x, double* y, int rows) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.y * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[columns[i] * 8 + column];
  y[row * 8 + column] = sum;
}
