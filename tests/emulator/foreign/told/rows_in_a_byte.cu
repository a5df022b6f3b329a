// A list of rows has a byte for each of 300.
// SAYS: at line 4
// launch: spmv<<<1, 1024>>>(row_offsets, columns, values, x, y, num_rows)
using Id = unsigned char;

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ Id list[2048];
    for (int row = threadIdx.x; row < num_rows; row += 1024) list[num_rows - 1 - row] = (Id)row;
    __syncthreads();
    for (int i = threadIdx.x; i < num_rows; i += 1024) {
        const int row = list[i];
        float sum = 0.0f;
        for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j) sum += values[j] * x[columns[j]];
        y[row] = sum;
    }
}
