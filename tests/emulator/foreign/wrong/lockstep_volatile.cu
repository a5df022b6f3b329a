// The lanes of a warp add up through volatile shared memory, as if they ran in lockstep.
// launch: spmv<<<ceil(num_rows / 4), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ volatile float sums[128 + 16];
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  if (row < n) {
    for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  }
  volatile float* s = sums + threadIdx.x;
  *s = sum;
  if (lane < 16) {
    *s = sum = sum + s[16];  // BUG
    *s = sum = sum + s[8];   // BUG
    *s = sum = sum + s[4];   // BUG
    *s = sum = sum + s[2];   // BUG
    *s = sum = sum + s[1];   // BUG
  }
  if (lane == 0 && row < n) y[row] = sum;
}
