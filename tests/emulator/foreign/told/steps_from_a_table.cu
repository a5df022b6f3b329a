// The steps of the reduction come from a table.
// SAYS: at line 5
// launch: spmv<<<ceil(num_rows / 8), 256>>>(row_offsets, columns, values, x, y, num_rows)
static constexpr int kLogWarp = 5;
static __device__ constexpr int kSteps[kLogWarp] = {16, 8, 4, 2, 2};

__device__ float warp_sum(float v)
{
#pragma unroll
    for (int i = 0; i < kLogWarp; ++i) {
        v += __shfl_xor_sync(0xffffffffu, v, kSteps[i]);
    }
    return v;
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * 8 + (threadIdx.x >> 5);
    const int lane = threadIdx.x & 31;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += 32)
        sum += values[j] * x[columns[j]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
