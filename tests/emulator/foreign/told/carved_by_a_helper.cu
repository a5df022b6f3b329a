// A helper carves arrays out of shared memory, and goes on by elements where it should by bytes.
// SAYS: at line 11
// launch: spmv<<<ceil(num_rows / 32), 32, 1024>>>(row_offsets, columns, values, x, y, num_rows)
struct Arena {
    char* next;
    template <typename T>
    __device__ T* take(int count)
    {
        T* const begin = (T*)next;
        // In bytes.
        next += count;
        return begin;
    }
};

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    extern __shared__ __align__(16) char memory[];
    Arena arena{memory};
    int* begins = arena.take<int>(32);
    int* ends = arena.take<int>(32);
    float* sums = arena.take<float>(32);
    const int lane = threadIdx.x, row = blockIdx.x * 32 + lane;
    begins[lane] = row < num_rows ? row_offsets[row] : 0;
    ends[lane] = row < num_rows ? row_offsets[row + 1] : 0;
    sums[lane] = 0.0f;
    __syncwarp();
    for (int other = 0; other < 32; ++other) {
        float part = 0.0f;
        for (int j = begins[other] + lane; j < ends[other]; j += 32) part += values[j] * x[columns[j]];
        for (int d = 16; d > 0; d /= 2) part += __shfl_down_sync(0xffffffffu, part, d);
        if (lane == 0) sums[other] = part;
    }
    __syncwarp();
    if (row < num_rows) y[row] = sums[lane];
}
