// Each warp of a block takes the rows between two numbers of a table.
// SAYS: with 16 instead of 17 in first_row[2] at line 6
// launch: spmv<<<ceil(num_rows / 32), 128>>>(row_offsets, columns, values, x, y, num_rows)
__constant__ int first_row[5] = {
    0, 8,
    17,
    24, 32};

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int base = blockIdx.x * 32;
    const int from = base + first_row[warp];
    const int to = base + (warp == 1 ? 16 : first_row[warp + 1]);
    for (int row = from; row < to && row < num_rows; ++row) {
        float sum = 0.0f;
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 32)
            sum += values[j] * x[columns[j]];
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
        if (lane == 0) y[row] = sum;
    }
}
