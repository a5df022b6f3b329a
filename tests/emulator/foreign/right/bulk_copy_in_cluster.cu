// The second block of a cluster sends its halves to the first by a bulk copy.
// launch: spmv<<<(num_rows + 31) / 32 * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)

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
spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float own[32], others[32];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, rank = blockIdx.x % 2, row = blockIdx.x / 2 * 32 + t;
  if (t == 0 && rank == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(shared(&bar)) : "memory");
  }
  sync_cluster();
  float sum = 0;
  if (row < n) for (int i = rp[row] + rank; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (rank == 1) {
    own[t] = sum;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (t == 0)
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(in_first(shared(others))), "r"(shared(own)), "r"(in_first(shared(&bar))) : "memory");
  } else {
    for (unsigned done = 0; !done;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(shared(&bar)) : "memory");
    if (row < n) y[row] = sum + others[t];
  }
  sync_cluster();
}
