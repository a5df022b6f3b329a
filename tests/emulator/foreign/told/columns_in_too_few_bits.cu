// Columns and local rows share a word in shared memory.
// SAYS: with 9 instead of 8 at line 4
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
#define COL_BITS 8
#define COL_MASK ((1u << COL_BITS) - 1u)

__device__ unsigned pack(unsigned row, unsigned column)
{
    return row << COL_BITS | (column & COL_MASK);
}

__device__ unsigned column_of(unsigned word) { return word & COL_MASK; }
__device__ unsigned row_of(unsigned word) { return word >> COL_BITS; }

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ unsigned words[64 * 32];
    __shared__ float sums[64];
    const int first = blockIdx.x * 64;
    const int last = min(first + 64, num_rows);
    const int begin = row_offsets[first];
    const int count = row_offsets[last] - begin;
    sums[threadIdx.x] = 0.0f;
    const int row = first + threadIdx.x;
    if (row < last)
        for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j)
            words[j - begin] = pack(threadIdx.x, columns[j]);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 64) {
        const unsigned word = words[i];
        const float product = values[begin + i] * x[column_of(word)];
        atomicAdd(&sums[row_of(word)], product);
    }
    __syncthreads();
    if (row < last) y[row] = sums[threadIdx.x];
}
