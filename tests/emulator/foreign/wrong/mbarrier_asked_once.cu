// x comes by a bulk copy, and whether it has come is asked once: the answer may be that it has not.
// launch: spmv<<<(num_rows + 63) / 64, 64>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
constexpr int MOST = 4096;

__device__ unsigned shared(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows,
                     int cols) {
  __shared__ alignas(16) float staged[MOST];
  __shared__ alignas(8) unsigned long long bar;
  const int t = threadIdx.x, row = blockIdx.x * 64 + t, fours = cols / 4 * 4;
  const bool fits = cols <= MOST;
  if (fits) {
    if (t == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&bar)) : "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&bar)), "r"(fours * 4)
                   : "memory");
      if (fours > 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     ::"r"(shared(staged)), "l"(__cvta_generic_to_global(x)), "r"(fours * 4), "r"(shared(&bar)) : "memory");
    }
    if (t < cols - fours) staged[fours + t] = x[fours + t];
    __syncthreads();
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; }" ::"r"(shared(&bar)) : "memory");
  }
  if (row >= rows) return;
  float sum = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * (fits ? staged : x)[columns[i]];  // BUG
  y[row] = sum;
}
