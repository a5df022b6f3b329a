// Masks name lanes that have ended: all others named take part, as the guide asks of warp-wide functions.
// launch: spmv<<<ceil(num_rows / 96), 96>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ volatile float sums[96];
  const int row = blockIdx.x * 96 + threadIdx.x;
  if (row >= n) return;
  const int begin = rp[row], length = rp[row + 1] - begin;
  const int most = __reduce_max_sync(0xffffffffu, length);
  float sum = 0;
  for (int i = 0; i < most; ++i) {
    const bool goes_on = i < length;
    if (__any_sync(0xffffffffu, goes_on) && goes_on) sum += va[begin + i] * x[ci[begin + i]];
    __syncwarp();
  }
  if (__popc(__match_any_sync(0xffffffffu, row)) != 1) sum = -1;
  if (__ballot_sync(0xffffffffu, true) == 0) sum = -1;
  sums[threadIdx.x] = sum;
  __syncwarp();
  y[row] = sums[threadIdx.x];
}
