// Lanes arrive at the other block's barrier before they have stored there.
// launch: spmv<<<ceil(num_rows / 128) * 2, 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void __cluster_dims__(2, 1, 1) spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float mine[64];
  __shared__ alignas(8) unsigned long long full;
  const int row = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  if (row < n) for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  unsigned rank, at, there, bar, bar_there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  at = (unsigned)__cvta_generic_to_shared(&mine[threadIdx.x]);
  bar = (unsigned)__cvta_generic_to_shared(&full);
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank ^ 1));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar_there) : "r"(bar), "r"(rank ^ 1));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x < 32) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar_there) : "memory");
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(sum) : "memory");  // BUG
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
  const int other = (blockIdx.x ^ 1) * 64 + threadIdx.x;
  if (other < n) y[other] = mine[threadIdx.x];  // BUG
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
