// Lanes weigh what they add by a table of ones.
// SAYS: with 1 instead of 0.5 in weights[3] at line 8
// launch: spmv<<<ceil(num_rows / 32), 128>>>(row_offsets, columns, values, x, y, num_rows)
static __device__ const float weights[4] = {
    1.0f,
    1.0f,
    1.0f,
    0.5f,
};

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 32 + threadIdx.x / 4;
    const int lane = threadIdx.x % 4;
    float sum = 0.0f;
    if (row < num_rows)
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 4)
            sum += values[j] * x[columns[j]];
    sum *= weights[lane];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (row < num_rows && lane == 0) y[row] = sum;
}
