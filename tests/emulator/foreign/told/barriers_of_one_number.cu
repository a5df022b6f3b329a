// Two pairs of warps reduce over their own named barrier.
// SAYS: with 2 instead of 1 at line 4
// launch: spmv<<<ceil(num_rows / 2), 128>>>(row_offsets, columns, values, x, y, num_rows)
enum Barriers { LOW_PAIR = 1, HIGH_PAIR = 1 };

template <int NUMBER>
__device__ void pair_sync() { asm volatile("bar.sync %0, 64;" ::"n"(NUMBER) : "memory"); }

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float partial[4];
    const int pair = threadIdx.x / 64, warp = threadIdx.x / 32, lane = threadIdx.x % 64;
    const int row = blockIdx.x * 2 + pair;
    float sum = 0.0f;
    if (row < num_rows)
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 64)
            sum += values[j] * x[columns[j]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane % 32 == 0) partial[warp] = sum;
    if (pair == 0) pair_sync<LOW_PAIR>();
    else pair_sync<HIGH_PAIR>();
    if (lane == 0 && row < num_rows) y[row] = partial[warp] + partial[warp + 1];
}
