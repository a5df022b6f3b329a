// Two bulk copies come to one mbarrier, which expects the bytes of one: its phase may end with either.
// launch: spmv<<<(num_rows + 7) / 8, 64>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int MOST = 512;

__device__ unsigned shared(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
__device__ void copy(void* to, const void* from, unsigned bytes, unsigned long long* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared(bar)) : "memory");
}

__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ alignas(16) float some_values[MOST];
  __shared__ alignas(16) int some_columns[MOST];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, from = blockIdx.x * 8, to = min(from + 8, rows);
  const int first = offsets[from] / 4 * 4, count = offsets[to] - first, fours = count / 4 * 4;
  if (count > MOST) __trap();
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&bar)), "r"(fours * 4) : "memory");
    if (fours > 0) {
      copy(some_values, values + first, fours * 4, &bar);
      copy(some_columns, columns + first, fours * 4, &bar);
    }
  }
  for (int i = fours + t; i < count; i += 64) some_values[i] = values[first + i], some_columns[i] = columns[first + i];
  for (unsigned done = 0; !done;)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared(&bar)) : "memory");
  __syncthreads();
  const int row = from + t / 8;
  float sum = 0;
  if (row < to)
    for (int i = offsets[row] - first + t % 8; i < offsets[row + 1] - first; i += 8)
      sum += some_values[i] * x[some_columns[i]];  // BUG
  for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (row < to && t % 8 == 0) y[row] = sum;
}
