// Rows of four entries are neither short nor long.
// SAYS: at line 14
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ int rows[64], count;
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const int begin = row < num_rows ? row_offsets[row] : 0;
    const int length = row < num_rows ? row_offsets[row + 1] - begin : 0;
    float sum = 0.0f;
    if (row < num_rows && length < 4) {
        for (int j = begin; j < begin + length; ++j) sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
    if (length > 4)
        rows[atomicAdd(&count, 1)] = row;
    __syncthreads();
    for (int k = threadIdx.x; k < count; k += 64) {
        float all = 0.0f;
        const int end = row_offsets[rows[k] + 1];
        for (int j = row_offsets[rows[k]]; j < end; ++j) all += values[j] * x[columns[j]];
        y[rows[k]] = all;
    }
}
