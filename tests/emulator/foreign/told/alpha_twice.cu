// Alpha is in the products and applied to their sum.
// SAYS: alpha is applied twice; alpha is used at line
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows, float alpha, float beta)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    const int s = row_offsets[row], e = row_offsets[row + 1];
    float sum = 0.0f;
    for (int j = s; j < e; ++j) sum += alpha * values[j] * x[columns[j]];
    y[row] = alpha * sum + (beta == 0.0f ? 0.0f : beta * y[row]);
}
