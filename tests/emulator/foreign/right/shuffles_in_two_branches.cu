// Even and odd lanes meet in a shuffle of one mask that each branch has for itself, and at a barrier likewise.
// launch: spmv<<<ceil(num_rows / 64), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float odd[64];
  const int row = blockIdx.x * 64 + threadIdx.x / 2, side = threadIdx.x % 2;
  float sum = 0;
  if (row < n) {
    for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  }
  float other;
  if (side == 0) {
    other = __shfl_xor_sync(0xffffffffu, sum, 1);
    __syncwarp();
    if (row < n) y[row] = sum + odd[threadIdx.x / 2] * 0.5f + other * 0.5f;
  } else {
    odd[threadIdx.x / 2] = sum;
    other = __shfl_xor_sync(0xffffffffu, sum, 1);
    __syncwarp();
  }
}
