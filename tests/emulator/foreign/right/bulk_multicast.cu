// Four entries of x at a time come to both blocks of a cluster, each of which takes half of the rows.
// launch: spmv<<<(num_rows + 63) / 64 * 2, 32>>>(row_offsets, columns, values, x, y, num_rows, num_cols)

__device__ unsigned shared(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
__device__ unsigned in_first(unsigned at) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(at));
  return there;
}
__device__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__global__ void __cluster_dims__(2, 1, 1)
spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int cols) {
  __shared__ alignas(16) float part[4];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, rank = blockIdx.x % 2, row = blockIdx.x / 2 * 64 + rank * 32 + t;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  sync_cluster();
  float sum = 0;
  int i = row < n ? rp[row] : 0;
  const int end = row < n ? rp[row + 1] : 0, whole = cols / 4 * 4;
  unsigned parity = 0;
  for (int base = 0; base < whole; base += 4, parity ^= 1) {
    if (t == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(shared(&bar)) : "memory");
    if (t == 0 && rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 16, [%2], %3;" ::"r"(shared(part)), "l"(x + base), "r"(shared(&bar)), "h"((short)3) : "memory");
    for (unsigned done = 0; !done;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(shared(&bar)), "r"(parity) : "memory");
    for (int j = rp[min(row, n)]; j < end; ++j)
      if (ci[j] / 4 * 4 == base) sum += va[j] * part[ci[j] - base];
    __syncwarp();
    sync_cluster();
  }
  for (; i < end; ++i) if (ci[i] >= whole) sum += va[i] * x[ci[i]];
  if (row < n) y[row] = sum;
  sync_cluster();
}
