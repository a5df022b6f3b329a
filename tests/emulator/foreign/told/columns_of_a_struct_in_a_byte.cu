// Entries are kept with a byte for their column.
// SAYS: at line 5
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
struct Entry {
    unsigned char column;
    float value;
};

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ Entry kept[64][16];
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= num_rows) return;
    const int begin = row_offsets[row], count = row_offsets[row + 1] - begin;
    for (int k = 0; k < count; ++k)
        kept[threadIdx.x][k & 15] = Entry{static_cast<unsigned char>(columns[begin + k]), values[begin + k]};
    float sum = 0.0f;
    for (int k = 0; k < count; ++k) sum += kept[threadIdx.x][k & 15].value * x[kept[threadIdx.x][k & 15].column];
    y[row] = sum;
}
