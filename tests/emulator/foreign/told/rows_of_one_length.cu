// Rows of five entries are neither short nor long.
// SAYS: no thread stores it: row
// SAYS: at line 15
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    if (e - s < 5) {
        for (int j = s; j < e; ++j) sum += values[j] * x[columns[j]];
        y[row] = sum;
    } else if (e - s > 5) {
        for (int j = e; j-- > s;) sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
}
