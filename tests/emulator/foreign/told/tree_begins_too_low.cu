// The sum of eight lanes begins with the step of four.
// SAYS: the loop there begins at line 15 (STEP is defined at line 4)
// launch: spmv<<<ceil(num_rows * 8 / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
#define STEP 2
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int row = (blockIdx.x * 64 + threadIdx.x) / 8;
    const int lane = threadIdx.x % 8;
    const int begin = row < num_rows ? row_offsets[row] : 0;
    const int end = row < num_rows ? row_offsets[row + 1] : 0;
    float sum = 0.0f;
    for (int j = begin + lane; j < end; j += 8) sum += values[j] * x[columns[j]];
#pragma unroll
    for (int step = STEP; step > 0; step /= 2)
        sum +=
            __shfl_xor_sync(0xffffffffu, sum, step, 8);
    if (row < num_rows && lane == 0) y[row] = sum;
}
