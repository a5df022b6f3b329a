// The sums of the warps begin in the middle of the products: there are as many of these as threads.
// SAYS: at line 14
// launch: spmv<<<num_rows, THREADS, (THREADS + WARPS) * sizeof(float)>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;
constexpr int PER_WARP = 32;

extern "C" __global__ void spmv(const int* row_offsets, const int* columns, const float* values,
                                const float* x, float* y, int num_rows)
{
    extern __shared__ float scratch[];
    float* products = scratch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float* sums = products + 2 * PER_WARP;
    const int row = blockIdx.x;
    float own = 0.0f;
    for (int j = row_offsets[row] + threadIdx.x; j < row_offsets[row + 1]; j += THREADS)
        own += values[j] * x[columns[j]];
    products[threadIdx.x] = own;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        if (lane < d) products[threadIdx.x] += products[threadIdx.x + d];
        __syncwarp();
    }
    if (lane == 0) sums[warp] = products[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int w = 0; w < WARPS; ++w) sum += sums[w];
        y[row] = sum;
    }
}
