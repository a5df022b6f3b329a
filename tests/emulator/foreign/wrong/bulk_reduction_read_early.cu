// Threads read what a bulk reduction changes before it has.
// launch: spmv<<<dim3(ceil(num_rows / 4), 2), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ alignas(16) float sums[1 << 16];
__device__ int are_set[1 << 16];

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float half[4];
  const int t = threadIdx.x, row = blockIdx.x * 4 + t;
  float sum = 0;
  if (t < 4 && row < n)
    for (int i = rp[row] + blockIdx.y; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (blockIdx.y == 0) {
    if (t < 4) sums[blockIdx.x * 4 + t] = sum;
    __syncwarp();
    if (t == 0) {
      __threadfence();
      atomicExch(&are_set[blockIdx.x], 1);
    }
    return;
  }
  if (t < 4) half[t] = sum;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (t == 0) {
    while (atomicExch(&are_set[blockIdx.x], 0) == 0) {}
    __threadfence();
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 16;" ::"l"(sums + blockIdx.x * 4), "r"((unsigned)__cvta_generic_to_shared(half)) : "memory");  // BUG
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncwarp();
  if (t < 4 && row < n) y[row] = sums[blockIdx.x * 4 + t];  // BUG
}
