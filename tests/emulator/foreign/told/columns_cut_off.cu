// Columns are kept in a byte.
// SAYS: which row
// SAYS: a number that its address depends on is cut off at line 13
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ unsigned char kept[128][16];
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    for (int j = s; j < e; ++j) kept[threadIdx.x][j - s & 15] = columns[j];
    for (int j = s; j < e; ++j) sum += values[j] * x[kept[threadIdx.x][j - s & 15]];
    y[row] = sum;
}
