// The warp that fills a ring of two stages waits for nobody to have read them.
// launch: spmv<<<ceil(num_rows / 32), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float ring[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int last = min(n, (int)(blockIdx.x + 1) * 32);
  int stage = 0;
  for (int row = blockIdx.x * 32; row < last; ++row) {
    if (warp == 0) {
      float v = 0;
      for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) v += va[i] * x[ci[i]];
      ring[stage][lane] = v;  // BUG
      if (stage == 0) asm volatile("bar.arrive 1, 64;" ::: "memory");
      else asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
      if (stage == 0) asm volatile("bar.sync 1, 64;" ::: "memory");
      else asm volatile("bar.sync 2, 64;" ::: "memory");
      float v = ring[stage][lane];  // BUG
      for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
      if (lane == 0) y[row] = v;
    }
    stage ^= 1;
  }
}
