// A thread keeps the entries of a row in an array that is too short for the longest rows.
// launch: <<<1, 64>>>
// matrix: rows=64 columns=100 mean=6
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 64
extern "C" __global__ void past_local_array(const int* row_ptr, const float* values, float* y) {
  float kept[8] = {};
  const int begin = row_ptr[threadIdx.x], length = row_ptr[threadIdx.x + 1] - begin;
  for (int i = 0; i < length; ++i) {
    kept[i] = values[begin + i];  // BUG: out-of-bounds
  }
  y[threadIdx.x] = kept[length / 3] + kept[7];
}
