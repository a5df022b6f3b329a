// Products lie swizzled in shared memory.
// SAYS: with 7 instead of 15 at line 4, or with 14 instead of 7 at line 5
// launch: spmv<<<ceil(num_rows / 32), 128>>>(row_offsets, columns, values, x, y, num_rows)
#define SWIZZLE(row, k) ((row) * 16 + ((k) ^ ((row) & 15)))
#define UNSWIZZLE(row, k) ((row) * 16 + ((k) ^ ((row) & 7)))

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float products[32 * 16];
    const int row = blockIdx.x * 32 + threadIdx.x / 4;
    const int local = threadIdx.x / 4, lane = threadIdx.x % 4;
    for (int k = lane; k < 16; k += 4) {
        float product = 0.0f;
        if (row < num_rows) {
            const int j = row_offsets[row] + k;
            if (j < row_offsets[row + 1]) product = values[j] * x[columns[j]];
        }
        products[SWIZZLE(local, k)] = product;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        const int mine = blockIdx.x * 32 + threadIdx.x;
        float sum = 0.0f;
        for (int k = 0; k < 12; ++k) sum += products[UNSWIZZLE(threadIdx.x, k)];
        if (mine < num_rows) y[mine] = sum;
    }
}
