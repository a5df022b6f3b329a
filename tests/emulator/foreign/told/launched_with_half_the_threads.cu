// A block has 64 rows and four threads for each, of which half are launched.
// SAYS: with 2 times as many threads in a block at line 3
// launch: spmv<<<ceil(num_rows / 64), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 64 + threadIdx.x / 4;
    const int lane = threadIdx.x % 4;
    float sum = 0.0f;
    if (row < num_rows) {
        const int end = row_offsets[row + 1];
        for (int j = row_offsets[row] + lane; j < end; j += 4) sum += values[j] * x[columns[j]];
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (row < num_rows && lane == 0) y[row] = sum;
}
