// Of two arrays in dynamic shared memory the second begins 64 bytes behind the first, not 64 elements.
// SAYS: at line 9
// launch: spmv<<<ceil(num_rows / 64), 64, 2 * 64 * sizeof(int)>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    extern __shared__ char memory[];
    int* begins = (int*)memory;
    int* ends = (int*)(memory + 64);
    const int row = blockIdx.x * 64 + threadIdx.x;
    if (row < num_rows) {
        begins[threadIdx.x] = row_offsets[row];
        ends[threadIdx.x] = row_offsets[row + 1];
    }
    __syncthreads();
    if (row >= num_rows) return;
    float sum = 0.0f;
    for (int j = begins[threadIdx.x]; j < ends[threadIdx.x]; ++j) sum += values[j] * x[columns[j]];
    y[row] = sum;
}
