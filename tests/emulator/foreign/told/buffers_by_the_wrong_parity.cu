// Of two buffers, the one that was filled is not the one that is read, from the second tile on.
// SAYS: at line 20
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
#define TILE 32
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float kept[2][TILE];
    const int lane = threadIdx.x, first = blockIdx.x * 32, row = first + lane;
    const int begin = row_offsets[first], end = row_offsets[min(first + 32, num_rows)];
    const int from = row < num_rows ? row_offsets[row] : 0;
    const int to = row < num_rows ? row_offsets[row + 1] : 0;
    float sum = 0.0f;
    if (begin + lane < end) kept[0][lane] = values[begin + lane] * x[columns[begin + lane]];
    for (int base = begin, tile = 0; base < end; base += TILE, ++tile) {
        const int next = base + TILE + lane;
        if (next < end) kept[(tile + 1) % 2][lane] = values[next] * x[columns[next]];
        __syncwarp();
        for (int j = max(from, base); j < min(to, base + TILE); ++j)
            sum += kept[tile / 2 % 2][j - base];
        __syncwarp();
    }
    if (row < num_rows) y[row] = sum;
}
