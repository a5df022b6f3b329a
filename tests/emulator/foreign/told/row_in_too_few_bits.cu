// Row and lane share a number, and one bit of the row is that of the lane.
// SAYS: its address is computed at lines
// SAYS: BITS is defined at line 5
// launch: spmv<<<ceil(num_rows * 8 / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int BITS = 2;
extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    const int thread = blockIdx.x * 128 + threadIdx.x;
    const int row =
        thread >> BITS;
    const int lane = thread & 7;
    if (row >= num_rows * 2) return;
    float sum = 0.0f;
    const int end = row_offsets[
        row + 1];
    for (int j = row_offsets[row] + lane; j < end; j += 8) sum += values[j] * x[columns[j]];
    for (int k = 4; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k, 8);
    if (lane == 0) y[row] = sum;
}
