// Each lane shall have its row's end from the next lane, of which the last has none.
// SAYS: row 31 lacks all of
// SAYS: read by no thread; what is taken is decided at lines 10
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int s = row_offsets[min(row, num_rows)];
    const int e = __shfl_sync(~0u, s, threadIdx.x + 1 & 31);
    float sum = 0.0f;
    for (int j = s; j < e; ++j) sum += values[j] * x[columns[j]];
    if (row < num_rows) y[row] = sum;
}
