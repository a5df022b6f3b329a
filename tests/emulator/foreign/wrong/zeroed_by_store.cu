// One block zeroes y by volatile stores while the others add to it by atomics.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ volatile int zeroed[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  if (side == 0) *(volatile float*)&y[row] = 0;  // BUG
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  atomicAdd(&y[row], sum);  // BUG
}
