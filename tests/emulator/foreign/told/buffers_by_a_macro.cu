// A macro says which of two buffers a tile is in, and says the same of two tiles after each other.
// SAYS: BUFFER is defined at line 5
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
#define TILE 64
#define BUFFER(tile) ((tile) / 2 % 2)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float kept[2][TILE];
    const int thread = threadIdx.x, first = blockIdx.x * 64, row = first + thread;
    const int begin = row_offsets[first], end = row_offsets[min(first + 64, num_rows)];
    const int from = row < num_rows ? row_offsets[row] : 0;
    const int to = row < num_rows ? row_offsets[row + 1] : 0;
    float sum = 0.0f;
    if (begin + thread < end) kept[BUFFER(0)][thread] = values[begin + thread] * x[columns[begin + thread]];
    __syncthreads();
    for (int base = begin, tile = 0; base < end; base += TILE, ++tile) {
        const int next = base + TILE + thread;
        if (next < end) kept[BUFFER(tile + 1)][thread] = values[next] * x[columns[next]];
        for (int j = max(from, base); j < min(to, base + TILE); ++j) sum += kept[BUFFER(tile)][j - base];
        __syncthreads();
    }
    if (row < num_rows) y[row] = sum;
}
