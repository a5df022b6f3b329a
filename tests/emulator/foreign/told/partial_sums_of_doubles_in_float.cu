// The warps of a row leave their sums of doubles as floats.
// SAYS: at line 4
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
using Partial = float;

__device__ double warp_sum(double v)
{
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const double* values,
                                const double* x, double* y, int num_rows)
{
    __shared__ Partial partial[2];
    const int row = blockIdx.x;
    double sum = 0.0;
    for (int j = row_offsets[row] + threadIdx.x; j < row_offsets[row + 1]; j += 64) sum += values[j] * x[columns[j]];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[row] = partial[0] + partial[1];
}
