// A block tells another of what a bulk copy has written.
// launch: spmv<<<dim3(ceil(num_rows / 4), 2), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float4 halves[1 << 16];
__device__ int are_there[1 << 16];

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) float out[4];
  const int t = threadIdx.x, row = blockIdx.x * 4 + t;
  float sum = 0;
  if (t < 4 && row < n)
    for (int i = rp[row] + blockIdx.y; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (blockIdx.y == 0) {
    if (t < 4) out[t] = sum;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(&halves[blockIdx.x]), "r"((unsigned)__cvta_generic_to_shared(out)), "r"(16) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      __threadfence();
      atomicExch(&are_there[blockIdx.x], 1);
    }
    return;
  }
  if (t == 0) {
    while (atomicExch(&are_there[blockIdx.x], 0) == 0) {}
    __threadfence();
  }
  __syncwarp();
  if (t < 4 && row < n) y[row] = sum + reinterpret_cast<float*>(&halves[blockIdx.x])[t];
}
