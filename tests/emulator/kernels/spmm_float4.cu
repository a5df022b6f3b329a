// SpMM with four columns for each thread, loaded and stored as float4, and each entry shared by a shuffle.
// launch: <<<25, 32>>>
// matrix: rows=100 columns=90 mean=12
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 2880 random
// argument: y output f32 3200
// expect: y spmm x 32
extern "C" __global__ void spmm_float4(const int* row_ptr, const int* columns, const float* values, const float* x, float* y) {
  const int lane = threadIdx.x % 8, group = threadIdx.x / 8, row = blockIdx.x * 4 + group;
  const unsigned mask = 0xffu << (group * 8);
  const int end = row_ptr[row + 1];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int first = row_ptr[row]; first < end; first += 8) {
    const int mine = first + lane;
    const int column = mine < end ? columns[mine] : 0;
    const float value = mine < end ? values[mine] : 0;
    const int count = min(8, end - first);
    for (int k = 0; k < count; ++k) {
      const int c = __shfl_sync(mask, column, k, 8);
      const float v = __shfl_sync(mask, value, k, 8);
      const float4 b = reinterpret_cast<const float4*>(x + c * 32)[lane];
      sum.x += v * b.x;
      sum.y += v * b.y;
      sum.z += v * b.z;
      sum.w += v * b.w;
    }
  }
  reinterpret_cast<float4*>(y + row * 32)[lane] = sum;
}
