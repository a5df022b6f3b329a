// Four values at once where their addresses allow it, which an integer of <cstdint> as wide as a pointer tells.
// launch: spmv<<<(num_rows + 63) / 64, 64>>>(row_offsets, columns, values, x, y, num_rows)
#include <cstdint>
__global__ void spmv(const int32_t* offsets, const int32_t* columns, const float* values, const float* x, float* y,
                     int rows) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= rows) return;
  int i = offsets[row];
  const int end = offsets[row + 1];
  float sum = 0;
  for (; i < end && reinterpret_cast<uintptr_t>(values + i) % 16 != 0; ++i) sum += values[i] * x[columns[i]];
  for (; i + 4 <= end; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(values + i);
    sum += four.x * x[columns[i]] + four.y * x[columns[i + 1]];
    sum += four.z * x[columns[i + 2]] + four.w * x[columns[i + 3]];
  }
  for (; i < end; ++i) sum += values[i] * x[columns[i]];
  y[row] = sum;
}
