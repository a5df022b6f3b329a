// Pieces of four entries overlap by one.
// SAYS: taken more than once, read at line 13
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    for (int first = s; first < e; first += 4) {
        const int stop = min(first + 5, e);
        for (int j = first; j < stop; ++j) sum += values[j] * x[columns[j]];
    }
    y[row] = sum;
}
