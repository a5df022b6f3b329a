// One warp hands half of each row to another by barriers at which it arrives without waiting: its lanes come from loops
// of different lengths, and the warp arrives once.
// launch: spmv<<<ceil(num_rows / 32), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float odd[2][32];
  const int lane = threadIdx.x % 32, row = blockIdx.x * 32 + lane;
  const int begin = row < n ? rp[row] : 0, end = row < n ? rp[row + 1] : 0;
  float sum = 0;
  for (int half = 0; half < 2; ++half) {
    const int middle = (begin + end) / 2, from = half ? middle : begin, to = half ? end : middle;
    if (threadIdx.x >= 32) {
      float other = 0;
      for (int i = from + 1; i < to; i += 2) other += va[i] * x[ci[i]];
      odd[half][lane] = other;
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + half) : "memory");
    } else {
      for (int i = from; i < to; i += 2) sum += va[i] * x[ci[i]];
      asm volatile("bar.sync %0, 64;" ::"r"(1 + half) : "memory");
      sum += odd[half][lane];
    }
  }
  if (threadIdx.x < 32 && row < n) y[row] = sum;
}
