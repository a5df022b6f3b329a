// The bits of a negative value are made longer with ones, over the column above them.
// SAYS: with the other sign of numbers at line 6
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ __forceinline__ unsigned long long packed(int column, float value)
{
    return (unsigned long long)column << 32 | (unsigned long long)__float_as_int(value);
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ unsigned long long kept[32];
    const int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) {
        kept[threadIdx.x] = packed(columns[j], values[j]);
        const unsigned long long word = kept[threadIdx.x];
        sum += __uint_as_float((unsigned)word) * x[(int)(word >> 32) & 511];
    }
    y[row] = sum;
}
