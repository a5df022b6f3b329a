// Two binary16 values at a time, multiplied as pairs and added up in binary32.
// launch: <<<1, 128>>>
// matrix: rows=96 columns=80 mean=6
// argument: block_ptr read-only i32 bsr-offsets 2
// argument: block_columns read-only i32 bsr-columns 2
// argument: values read-only f16 bsr-values 2
// argument: x read-only f16 80 random 2
// argument: y output f32 96
// argument: rows i32 value 96
// expect: y spmv x
extern "C" __global__ void half_pairs(const int* block_ptr, const int* block_columns, const unsigned* values, const unsigned* x, float* y, int rows) {
  const int row = threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = block_ptr[row / 2]; i < block_ptr[row / 2 + 1]; ++i) {
    unsigned product;
    float low, high;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(product) : "r"(values[i * 2 + row % 2]), "r"(x[block_columns[i]]));
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }" : "=f"(low), "=f"(high) : "r"(product));
    sum += low + high;
  }
  y[row] = sum;
}
