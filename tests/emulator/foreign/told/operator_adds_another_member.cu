// Two sums a lane, of even and odd entries.
// SAYS: last used at line 10
// launch: spmv<<<ceil(num_rows / 16), 128>>>(row_offsets, columns, values, x, y, num_rows)
struct Pair {
    float x, y;
};

__device__ inline Pair operator+(Pair a, Pair b)
{
    return Pair{a.x + b.x, a.y + b.x};
}

__device__ inline Pair shuffle(Pair a, int d)
{
    return Pair{__shfl_down_sync(0xffffffffu, a.x, d, 8), __shfl_down_sync(0xffffffffu, a.y, d, 8)};
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 16 + threadIdx.x / 8;
    const int lane = threadIdx.x % 8;
    Pair sum{0.0f, 0.0f};
    if (row < num_rows) {
        const int end = row_offsets[row + 1];
        for (int j = row_offsets[row] + 2 * lane; j < end; j += 16) {
            const float first = values[j] * x[columns[j]];
            const float second = j + 1 < end ? values[j + 1] * x[columns[j + 1]] : 0.0f;
            sum.x += first;
            sum.y += second;
        }
    }
    for (int d = 4; d > 0; d /= 2) sum = sum + shuffle(sum, d);
    if (row < num_rows && lane == 0) y[row] = sum.x + sum.y;
}
