// Warps leave sums and wait at the cluster's barrier, in a kernel without clusters: each block is one of its own. A
// fence of the block is enough there.
// launch: spmv<<<num_rows, 96>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[3];
  const int row = blockIdx.x, warp = threadIdx.x / 32;
  float sum = 0;
  for (int i = rp[row] + threadIdx.x; i < rp[row + 1]; i += 96) sum += va[i] * x[ci[i]];
  for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[warp] = sum;
  asm volatile("fence.acq_rel.cluster;\n\tbarrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;"
               ::: "memory");
  if (threadIdx.x % 32 == 0) sum = sums[(warp + 1) % 3];
  __threadfence_block();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (threadIdx.x % 32 == 0) sums[warp] = sum;
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) y[row] = sums[0] + sums[1] + sums[2];
}
