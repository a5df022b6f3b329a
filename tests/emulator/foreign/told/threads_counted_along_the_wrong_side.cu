// Lanes of a group are numbered along y, where warps are along x.
// SAYS: with x and y of threads and blocks the other way round at line 4
// launch: spmv<<<ceil(num_rows / 8), dim3(8, 16)>>>(row_offsets, columns, values, x, y, num_rows)
__device__ __forceinline__ int number() { return threadIdx.x * blockDim.y + threadIdx.y; }

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 8 + number() / 16, lane = number() % 16;
    float sum = 0.0f;
    if (row < num_rows)
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 16)
            sum += values[j] * x[columns[j]];
    for (int d = 8; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d, 16);
    if (row < num_rows && lane == 0) y[row] = sum;
}
