// Of two arrays in dynamic shared memory the second begins 64 bytes behind the first, not 64 elements: so a macro says.
// SAYS: VALUES_AT is defined at line 5
// launch: spmv<<<ceil(num_rows / 64), 64, 2 * 64 * sizeof(int)>>>(row_offsets, columns, values, x, y, num_rows)
#define COLUMNS_AT 0
#define VALUES_AT (COLUMNS_AT + 64)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    extern __shared__ __align__(16) char memory[];
    int* kept_columns = (int*)(memory + COLUMNS_AT);
    float* kept_values = (float*)(memory + VALUES_AT);
    const int thread = threadIdx.x, first = blockIdx.x * 64, row = first + thread;
    const int begin = row_offsets[first], end = row_offsets[min(first + 64, num_rows)];
    const int from = row < num_rows ? row_offsets[row] : 0;
    const int to = row < num_rows ? row_offsets[row + 1] : 0;
    float sum = 0.0f;
    for (int base = begin; base < end; base += 64) {
        __syncthreads();
        if (base + thread < end) {
            kept_columns[thread] = columns[base + thread];
            kept_values[thread] = values[base + thread];
        }
        __syncthreads();
        for (int j = max(from, base); j < min(to, base + 64); ++j)
            sum += kept_values[j - base] * x[kept_columns[j - base]];
    }
    if (row < num_rows) y[row] = sum;
}
