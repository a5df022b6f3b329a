// Values in bfloat16, which are the upper halves of floats.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only bf16 csr-values
// argument: x read-only bf16 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
__device__ float widened(unsigned short bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
extern "C" __global__ void bfloat_storage(const int* row_ptr, const int* columns, const unsigned short* values, const unsigned short* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum = __fmaf_rn(widened(values[i]), widened(x[columns[i]]), sum);
  y[row] = sum;
}
