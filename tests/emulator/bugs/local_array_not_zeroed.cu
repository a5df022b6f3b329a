// A thread adds up the entries of a row by column in an array of its own, which starts with whatever is there.
// launch: <<<1, 64>>>
// matrix: rows=64 columns=100 mean=6
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: y output f32 64
extern "C" __global__ void local_array_not_zeroed(const int* row_ptr, const int* columns, const float* values, float* y) {
  float sums[4];
  for (int i = row_ptr[threadIdx.x]; i < row_ptr[threadIdx.x + 1]; ++i) {
    sums[columns[i] & 3] += values[i];  // BUG: uninitialised
  }
  y[threadIdx.x] = sums[row_ptr[threadIdx.x] & 3];  // ALSO: uninitialised
}
