// Threads write what a bulk copy then reads, and fence that.
// launch: spmv<<<num_rows, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float4 stages[1 << 14][8];

__device__ unsigned shared(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
__device__ void wait(unsigned bar, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float parts[32];
  __shared__ alignas(8) unsigned long long bar;
  const int row = blockIdx.x, t = threadIdx.x;
  float sum = 0;
  for (int i = rp[row] + t; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  reinterpret_cast<float*>(stages[row])[t] = sum;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncwarp();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(shared(&bar)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                 ::"r"(shared(parts)), "l"(stages[row]), "r"(shared(&bar)) : "memory");
  }
  wait(shared(&bar), 0);
  if (t == 0) {
    float all = 0;
    for (int i = 0; i < 32; ++i) all += parts[i];
    y[row] = all;
  }
}
