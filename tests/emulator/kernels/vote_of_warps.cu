// A warp goes on as long as one of its lanes has entries left.
// launch: <<<4, 32>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void vote_of_warps(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const bool is_row = row < rows;
  int i = is_row ? row_ptr[row] : 0;
  const int end = is_row ? row_ptr[row + 1] : 0;
  float sum = 0;
  while (__any_sync(0xffffffffu, i < end)) {
    if (i < end) sum += values[i] * x[columns[i]];
    ++i;
  }
  if (is_row) y[row] = sum;
}
