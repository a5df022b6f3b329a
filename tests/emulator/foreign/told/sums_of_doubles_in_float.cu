// The sum of a row of doubles is a float.
// SAYS: at line 9
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const double* values,
                                const double* x, double* y, int num_rows)
{
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) {
        const double value = values[j];
        sum += value * x[columns[j]];
    }
    y[row] = sum;
}
