// The block ends before a bulk copy has read its shared memory.
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float out[32];
  const int row = blockIdx.x * 32 + threadIdx.x, count = min(32, n - (int)blockIdx.x * 32);
  float sum = 0;
  if (row < n) for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  out[threadIdx.x] = sum;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0 && count / 4) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + blockIdx.x * 32), "r"((unsigned)__cvta_generic_to_shared(out)), "r"(count / 4 * 16) : "memory");  // BUG
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
  if (threadIdx.x >= (count & ~3) && threadIdx.x < count) y[row] = sum;
}
