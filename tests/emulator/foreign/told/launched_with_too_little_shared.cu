// The copy of x in shared memory has room for as many elements as the matrix has columns, halves of which are given.
// SAYS: with 2 times as much dynamic shared memory at line 3
// launch: spmv<<<ceil(num_rows / 64), 64, num_cols * 2>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows, int num_cols)
{
    extern __shared__ float copy[];
    for (int c = threadIdx.x; c < num_cols; c += 64) copy[c] = x[c];
    __syncthreads();
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) sum += values[j] * copy[columns[j]];
    y[row] = sum;
}
