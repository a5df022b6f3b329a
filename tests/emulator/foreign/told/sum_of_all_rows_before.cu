// A thread has four rows, and its sum goes on from each to the next.
// SAYS: its sum begins at line 9
// launch: spmv<<<ceil(num_rows / 256), 64>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int first = (blockIdx.x * 64 + threadIdx.x) * 4;
    const int last = min(first + 4, num_rows);
    float sum = 0.0f;
    for (int row = first; row < last; ++row) {
        const int end = row_offsets[row + 1];
        for (int j = row_offsets[row]; j < end; ++j)
            sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
}
