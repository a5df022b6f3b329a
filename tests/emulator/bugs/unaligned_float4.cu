// Four values at a time are loaded from where a row happens to begin.
// launch: <<<1, 32>>>
// matrix: rows=32 columns=100 mean=8
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 32
extern "C" __global__ void unaligned_float4(const int* row_ptr, const float* values, float* y) {
  const int begin = row_ptr[threadIdx.x], end = row_ptr[threadIdx.x + 1];
  float sum = 0;
  int i = begin;
  for (; i + 4 <= end; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(values + i);  // BUG: misaligned
    sum += four.x + four.y + four.z + four.w;
  }
  for (; i < end; ++i) sum += values[i];
  y[threadIdx.x] = sum;
}
