// Where a row has an odd number of entries, the first of the next row is added.
// SAYS: is in it, read at line 14
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    int j = s;
    for (; j + 1 < e; j += 2) sum += values[j] * x[columns[j]] + values[j + 1] * x[columns[j + 1]];
    // Where the row has an entry left.
    if (e > s && row + 1 < num_rows) sum += values[j] * x[columns[j]];
    y[row] = sum;
}
