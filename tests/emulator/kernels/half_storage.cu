// Values in binary16, converted as they are loaded.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only u16 csr-columns
// argument: values read-only f16 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
__device__ __forceinline__ float widened(unsigned short half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}
extern "C" __global__ void half_storage(const int* row_ptr, const unsigned short* columns, const unsigned short* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += widened(values[i]) * x[columns[i]];
  y[row] = sum;
}
