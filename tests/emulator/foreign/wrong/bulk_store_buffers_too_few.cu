// One buffer, from which results are stored by bulk copies, where it is waited for as if there were two.
// launch: spmv<<<3, 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float out[32];
  const int t = threadIdx.x;
  for (int base = blockIdx.x * 32; base < n; base += 96) {
    float* to = out;
    const int row = base + t, whole = min(32, n - base) / 4 * 4;
    float sum = 0;
    if (row < n) for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
    if (t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    __syncwarp();
    to[t] = sum;  // BUG
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (t == 0) {
      if (whole > 0) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + base), "r"((unsigned)__cvta_generic_to_shared(to)), "r"(whole * 4) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    if (t >= whole && row < n) y[row] = sum;
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
