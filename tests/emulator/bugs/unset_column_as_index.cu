// Columns are staged for the entries that exist, and the padding's unset columns are used as indices.
// launch: <<<16, 8>>>
// matrix: rows=16 columns=100 mean=4
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: x read-only f32 100 random
// argument: y output f32 128
extern "C" __global__ void unset_column_as_index(const int* row_ptr, const int* columns, const float* x, float* y) {
  __shared__ int staged[8];
  const int t = threadIdx.x, begin = row_ptr[blockIdx.x], length = row_ptr[blockIdx.x + 1] - begin;
  if (t < length) staged[t] = columns[begin + t];
  __syncthreads();
  y[blockIdx.x * 8 + t] = x[staged[7 - t]];  // BUG: uninitialised; ALSO: out-of-bounds
}
