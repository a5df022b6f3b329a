// All lanes of a warp add up in place: a lane may add what its neighbour has added to already, since a step has one
// barrier only.
// launch: spmv<<<num_rows, 32>>>(row_offsets, columns, values, x, y)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y) {
  __shared__ volatile float sums[64];
  const int lane = threadIdx.x, row = blockIdx.x;
  float sum = 0;
  for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  sums[lane] = sum;
  sums[lane + 32] = 0;
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    sums[lane] = sums[lane] + sums[lane + step];  // BUG
    __syncwarp();
  }
  if (lane == 0) y[row] = sums[0];
}
