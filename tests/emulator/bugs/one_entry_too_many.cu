// Each row's loop runs up to and including the first entry of the next row.
// launch: <<<1, 128>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 100
// argument: rows i32 value 100
extern "C" __global__ void one_entry_too_many(const int* row_ptr, const float* values, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  const int end = row_ptr[row + 1];
  for (int i = row_ptr[row]; i <= end; ++i) {
    sum += values[i];  // BUG: out-of-bounds
  }
  y[row] = sum;
}
