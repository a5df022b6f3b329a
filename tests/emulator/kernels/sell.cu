// SELL-32: a warp for each slice.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: slice_ptr read-only i32 sell-offsets 32
// argument: columns read-only i32 sell-columns 32
// argument: values read-only f32 sell-values 32
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void sell(const int* slice_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, slice = row / 32;
  if (slice * 32 >= rows) return;
  float sum = 0;
#pragma unroll 4
  for (int i = slice_ptr[slice] + row % 32; i < slice_ptr[slice + 1]; i += 32) sum += values[i] * x[columns[i]];
  if (row < rows) y[row] = sum;
}
