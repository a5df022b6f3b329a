// Lanes exchange their sums through shared memory, with a fence of the block's scope before each barrier of the warp.
// launch: spmv<<<ceil(num_rows / 4), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[128];
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  if (row < n) {
    for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  }
  sums[threadIdx.x] = sum;
  for (int step = 16; step > 0; step /= 2) {
    __threadfence_block();
    __syncwarp();
    const float other = sums[threadIdx.x ^ step];
    __threadfence_block();
    __syncwarp();
    sum += other;
    sums[threadIdx.x] = sum;
  }
  if (lane == 0 && row < n) y[row] = sum;
}
