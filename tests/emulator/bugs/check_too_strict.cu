// A check of the columns stops the kernel at the last valid column.
// launch: <<<1, 64>>>
// matrix: rows=64 columns=8 mean=6
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: x read-only f32 8 random
// argument: y output f32 64
// argument: last_column i32 value 7
extern "C" __global__ void check_too_strict(const int* row_ptr, const int* columns, const float* x, float* y, int last_column) {
  float sum = 0;
  for (int i = row_ptr[threadIdx.x]; i < row_ptr[threadIdx.x + 1]; ++i) {
    if (columns[i] >= last_column) {
      __trap();  // BUG: trap
    }
    sum += x[columns[i]];
  }
  y[threadIdx.x] = sum;
}
