// Rows are drawn from a counter that nobody sets back.
// SAYS: reads what an earlier launch left in next_row, stored at line 11
// launch: spmv<<<4, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int next_row;
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    for (;;) {
        int row = 0;
        const int lane = threadIdx.x;
        if (lane == 0) row = atomicAdd(&next_row, 1);
        row = __shfl_sync(~0u, row, 0);
        if (row >= num_rows) return;
        float sum = 0.0f;
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 32) sum += values[j] * x[columns[j]];
        for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
        if (lane == 0) y[row] = sum;
    }
}
