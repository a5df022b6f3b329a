// A scan of a block gives each thread the sum of those before it, and is taken for where it ends.
// SAYS: at lines 14 and 33
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int sum_before(int v, int* scratch)
{
    scratch[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        const int other = threadIdx.x >= d ? scratch[threadIdx.x - d] : 0;
        __syncthreads();
        scratch[threadIdx.x] += other;
        __syncthreads();
    }
    return scratch[threadIdx.x] - v;
}

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ int scratch[64];
    __shared__ float products[1024];
    const int first = blockIdx.x * 64, row = first + threadIdx.x;
    int length = 0;
    if (row < num_rows) {
        length = row_offsets[row + 1] - row_offsets[row];
    }

    const int begin = row_offsets[first], all = row_offsets[min(first + 64, num_rows)] - begin;
    for (int k = threadIdx.x; k < all; k += 64)
        products[k] = values[begin + k] * x[columns[begin + k]];

    // Where the row's entries end among those of the block.
    const int last = sum_before(length, scratch);
    float sum = 0.0f;
    for (int k = max(0, last - length); k < last; ++k) sum += products[k];
    if (row < num_rows) y[row] = sum;
}
