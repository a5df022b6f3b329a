// Half of each row's entries is stored by a bulk copy, and threads add the other half to that: `.read` waits until the
// copy has read shared memory, not until it has written.
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float out[32];
  const int base = blockIdx.x * 32, row = base + threadIdx.x, whole = min(32, n - base) / 4 * 4;
  float even = 0, odd = 0;
  if (row < n)
    for (int i = rp[row]; i < rp[row + 1]; ++i) (i % 2 ? odd : even) += va[i] * x[ci[i]];
  out[threadIdx.x] = even;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0 && whole > 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + base), "r"((unsigned)__cvta_generic_to_shared(out)), "r"(whole * 4) : "memory");  // BUG
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncwarp();
  if (threadIdx.x < whole) y[row] += odd;  // BUG
  else if (row < n) y[row] = even + odd;
}
