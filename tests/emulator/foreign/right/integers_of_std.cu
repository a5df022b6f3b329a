// Offsets, columns and sizes have the sized integers of the standard library, by its names and by one of the kernel's own.
// launch: spmv<<<(num_rows + 63) / 64, 64>>>(row_offsets, columns, values, x, y, num_rows)
#include <cstddef>
#include <cstdint>
using Offset = std::int64_t;

__global__ void spmv(const Offset* offsets, const std::int32_t* columns, const float* values, const float* x, float* y,
                     std::size_t rows) {
  const std::size_t row = blockIdx.x * std::size_t{64} + threadIdx.x;
  if (row >= rows) return;
  const std::ptrdiff_t count = offsets[row + 1] - offsets[row];
  float sum = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += values[offsets[row] + i] * x[columns[offsets[row] + i]];
  y[row] = sum;
}
