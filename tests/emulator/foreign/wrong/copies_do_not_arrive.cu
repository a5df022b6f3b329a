// A warp for each row: the threads arrive at the mbarrier themselves, and not behind their copies.
// launch: spmv<<<num_rows, 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(8) unsigned long long barrier;
  __shared__ float values[32];
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  const unsigned to = (unsigned)__cvta_generic_to_shared(&values[threadIdx.x]);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(bar) : "memory");
  __syncwarp();
  float sum = 0;
  unsigned parity = 0;
  for (int from = rp[blockIdx.x]; from < rp[blockIdx.x + 1]; from += 32) {
    const int count = min(32, rp[blockIdx.x + 1] - from), other = 31 - threadIdx.x;
    if (threadIdx.x < count)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(va + from + threadIdx.x) : "memory");
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(bar) : "memory");
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    parity ^= 1;
    if (other < count) sum += values[other] * x[ci[from + other]];  // BUG
    __syncwarp();
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
