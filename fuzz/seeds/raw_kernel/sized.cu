// launch: k<<<(num_rows + 127) / 128, 128>>>(offsets, columns, values, x, y, num_rows)
#include <cstdint> // 1000
__global__ void k(const uint32_t* offsets, const int32_t* columns, const double* values, const double* x, double* y,
                  uint32_t rows) {
  const uint32_t row = blockIdx.x * 128 + threadIdx.x;
  if (row < rows) y[row] = 0;
}
