// The mbarriers that bulk copies arrive at are not fenced after they were initialised.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int STAGE = 128;

__device__ void init(unsigned bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
}
__device__ void expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ void copy(unsigned to, const float* from, unsigned bytes, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"  // BUG
               ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");  // BUG
}
__device__ void wait(unsigned bar, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float stages[2][STAGE];
  __shared__ alignas(8) unsigned long long barriers[2];
  __shared__ float warps[2];
  const int begin = rp[blockIdx.x], end = rp[blockIdx.x + 1], all = rp[n];
  // Copies are of 16 bytes and more; the last entries of the matrix are read as they are.
  const int first = begin / 4 * 4, last = min((end + 3) / 4 * 4, all / 4 * 4);
  const auto shared = [](const void* at) { return (unsigned)__cvta_generic_to_shared(at); };
  const auto issue = [&](int k) {
    const int from = first + k * STAGE, count = max(0, min(STAGE, last - from));
    const unsigned bar = shared(&barriers[k % 2]);
    expect(bar, count * 4);
    if (count > 0) copy(shared(stages[k % 2]), va + from, count * 4, bar);
  };
  const int steps = (end - first + STAGE - 1) / STAGE;
  if (threadIdx.x == 0) {
    init(shared(&barriers[0]));
    init(shared(&barriers[1]));
    issue(0);
  }
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < steps; ++k) {
    if (threadIdx.x == 0 && k + 1 < steps) issue(k + 1);
    wait(shared(&barriers[k % 2]), k / 2 % 2);
    const int from = first + k * STAGE;
    for (int i = max(from, begin) + (int)threadIdx.x; i < min(from + STAGE, end); i += 64)
      sum += (i < last ? stages[k % 2][i - from] : va[i]) * x[ci[i]];
    __syncthreads();
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = warps[0] + warps[1];
}
