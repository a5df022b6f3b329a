// Arrivals and waits at the mbarrier of another block name no scope, as in most kernels.
// launch: spmv<<<(num_rows + 63) / 64 * 2, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ unsigned shared(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
__device__ unsigned in_first(unsigned at) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(at));
  return there;
}

__global__ void __cluster_dims__(2, 1, 1)
spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ float others[64];
  __shared__ alignas(8) unsigned long long bar;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int t = threadIdx.x, row = blockIdx.x / 2 * 64 + t;
  if (t == 0 && rank == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(shared(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  float sum = 0;
  if (row < rows)
    for (int i = offsets[row] + rank; i < offsets[row + 1]; i += 2) sum += values[i] * x[columns[i]];
  if (rank == 1) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(in_first(shared(&others[t]))), "f"(sum) : "memory");
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(in_first(shared(&bar))) : "memory");
  } else {
    for (unsigned done = 0; !done;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(shared(&bar)) : "memory");
    if (row < rows) y[row] = sum + others[t];
  }
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
