// A block for each row: every thread arrives at an mbarrier with its sum in place, and the first
// thread adds them up when all have.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ void init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ unsigned long long arrive(unsigned bar) {
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
  return state;
}
__device__ bool has_ended(unsigned bar, unsigned long long state) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"(bar), "l"(state) : "memory");
  return done;
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(8) unsigned long long barrier;
  __shared__ float sums[64];
  const unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) init(bar, blockDim.x);
  __syncthreads();
  const int row = blockIdx.x;
  float sum = 0;
  for (int i = rp[row] + threadIdx.x; i < rp[row + 1]; i += 64) sum += va[i] * x[ci[i]];
  sums[threadIdx.x] = sum;
  const auto state = arrive(bar);
  if (threadIdx.x > 0) return;
  while (!has_ended(bar, state)) {
  }
  float total = 0;
  for (int k = 0; k < 64; ++k) total += sums[k];
  y[row] = total;
}
