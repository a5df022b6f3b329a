// The width of the group is a default argument.
// SAYS: with 1 instead of 2 at line 6
// launch: spmv<<<ceil(num_rows / 16), 128>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int kGroup = 8;

__device__ __forceinline__ float group_sum(float v, int width = kGroup / 2)
{
    for (int d = width / 2; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d, width);
    return v;
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 16 + threadIdx.x / kGroup;
    const int lane = threadIdx.x % kGroup;
    float sum = 0.0f;
    if (row < num_rows) {
        const int end = row_offsets[row + 1];
        for (int j = row_offsets[row] + lane; j < end; j += kGroup) {
            const float a = values[j];
            sum += a * x[columns[j]];
        }
    }

    const float total = group_sum(sum);

    if (row < num_rows && lane == 0) y[row] = total;
}
