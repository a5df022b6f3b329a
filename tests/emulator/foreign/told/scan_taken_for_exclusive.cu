// A scan gives each lane the sum up to and with its own, and is taken for that of those before it.
// SAYS: at lines 10 and 26
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int warp_scan(int v)
{
    for (int d = 1; d < 32; d *= 2) {
        const int before = __shfl_up_sync(0xffffffffu, v, d);
        if (threadIdx.x >= d) v += before;
    }
    return v;
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ short owner[1024];
    __shared__ float sums[32];
    const int lane = threadIdx.x, first = blockIdx.x * 32, row = first + lane;
    int count = 0;
    if (row < num_rows) {
        const int end = row_offsets[row + 1];
        count = end - row_offsets[row];
    }
    sums[lane] = 0.0f;

    const int place = warp_scan(count);
    for (int k = 0; k < count; ++k) owner[place + k] = lane;
    __syncwarp();
    const int begin = row_offsets[first], end = row_offsets[min(first + 32, num_rows)];
    for (int j = begin + lane; j < end; j += 32) atomicAdd(&sums[owner[j - begin]], values[j] * x[columns[j]]);
    __syncwarp();
    if (row < num_rows) y[row] = sums[lane];
}
