// Blocks of 4 by 4, a row of a block for each thread, loaded as float4.
// launch: <<<1, 128>>>
// matrix: rows=96 columns=80 mean=6
// argument: block_ptr read-only i32 bsr-offsets 4
// argument: block_columns read-only i32 bsr-columns 4
// argument: values read-only f32 bsr-values 4
// argument: x read-only f32 80 random
// argument: y output f32 96
// argument: rows i32 value 96
// expect: y spmv x
extern "C" __global__ void bsr_float4(const int* block_ptr, const int* block_columns, const float4* values, const float4* x, float* y, int rows) {
  const int row = threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = block_ptr[row / 4]; i < block_ptr[row / 4 + 1]; ++i) {
    const float4 a = values[i * 4 + row % 4], b = x[block_columns[i]];
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  y[row] = sum;
}
