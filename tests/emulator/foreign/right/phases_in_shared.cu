// Producers and consumers of a block hand over stages by named barriers.
// launch: spmv<<<ceil(num_rows / 32), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float stage[32];
  const int first = blockIdx.x * 32, last = min(first + 32, n), lane = threadIdx.x % 32, row = first + lane;
  float sum = 0;
  for (int at = rp[first]; at < rp[last]; at += 32) {
    if (threadIdx.x < 32) {
      if (at + lane < rp[last]) stage[lane] = va[at + lane] * x[ci[at + lane]];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (row < last) {
        for (int i = max(at, rp[row]); i < min(at + 32, rp[row + 1]); ++i) sum += stage[i - at];
      }
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  if (threadIdx.x >= 32 && row < last) y[row] = sum;
}
