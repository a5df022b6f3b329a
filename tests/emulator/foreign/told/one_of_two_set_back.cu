// The counter of blocks is set back, and not the one by which they draw their rows.
// SAYS: other state is set back at line 19
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ unsigned blocks;
__device__ unsigned turns;
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ unsigned turn;
    if (threadIdx.x == 0) turn = atomicAdd(&turns, 1u);
    __syncthreads();
    const int row = turn * 64 + threadIdx.x;
    if (row < num_rows) {
        float sum = 0.0f;
        for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
    if (threadIdx.x == 0 && atomicAdd(&blocks, 1u) == gridDim.x - 1)
        blocks = 0;
}
