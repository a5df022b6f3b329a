// Each block has as many rows as a quotient says that is rounded down.
// SAYS: a quotient that this depends on is rounded at line 7
// launch: spmv<<<7, 64>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int share = num_rows / gridDim.x;
    const int first = blockIdx.x * share;
    for (int row = first + threadIdx.x; row < first + share; row += 64) {
        float sum = 0.0f;
        for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
}
