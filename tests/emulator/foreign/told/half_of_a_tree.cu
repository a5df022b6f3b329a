// The tree over twelve threads leaves a third one out.
// SAYS: read at line 13 and last used at line
// launch: spmv<<<num_rows, 12>>>(row_offsets, columns, values, x, y, num_rows)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float part[12];
    const int row = blockIdx.x, t = threadIdx.x;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    part[t] = 0.0f;
    for (int j = s + t; j < e; j += 12)
        part[t] +=
            values[j] * x[columns[j]];
    __syncthreads();
    for (int k = 6; k > 0; k /= 2) {
        if (t < k) part[t] += part[t + k];
        __syncthreads();
    }
    if (t == 0) y[row] = part[0];
}
