// What each thread takes is rounded down: the last entries are nobody's.
// SAYS: with a quotient that is rounded up at line 12
// launch: spmv<<<1, 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float sums[1024];
    for (int row = threadIdx.x; row < num_rows; row += blockDim.x) sums[row] = 0.0f;
    __syncthreads();

    const int all = row_offsets[num_rows];
    const int each = all / (int)blockDim.x;

    int j = threadIdx.x * each;
    const int end = min(j + each, all);
    int row = 0;
    while (row_offsets[row + 1] <= j && row + 1 < num_rows) ++row;
    for (; j < end; ++j) {
        while (row_offsets[row + 1] <= j) ++row;
        atomicAdd(&sums[row], values[j] * x[columns[j]]);
    }
    __syncthreads();
    for (int row = threadIdx.x; row < num_rows; row += blockDim.x) y[row] = sums[row];
}
