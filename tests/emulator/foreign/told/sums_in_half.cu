// Sums are kept in half precision.
// SAYS: no more than what rounding to f16 loses; numbers are rounded to f16 at line 12
#include <cuda_fp16.h>
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    for (int j = s; j < e; ++j) sum = (float)(__half)(sum + values[j] * x[columns[j]]);
    y[row] = sum;
}
