// Offsets of 64 bits, and loads through the read-only cache.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i64 csr-offsets
// argument: columns read-only i64 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i64 value 100
// expect: y spmv x
extern "C" __global__ void wide_offsets(const long long* row_ptr, const long long* columns, const float* values, const float* x, float* y, long long rows) {
  for (long long row = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; row < rows; row += gridDim.x * static_cast<long long>(blockDim.x)) {
    float sum = 0;
    for (long long i = __ldg(row_ptr + row); i < __ldg(row_ptr + row + 1); ++i) sum += __ldg(values + i) * __ldg(x + columns[i]);
    y[row] = sum;
  }
}
