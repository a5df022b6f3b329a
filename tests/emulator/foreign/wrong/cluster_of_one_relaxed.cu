// Warps leave sums and arrive at the barrier of a cluster of one block, without a release or a fence.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[2];
  const int row = blockIdx.x;
  float sum = 0;
  for (int i = rp[row] + threadIdx.x; i < rp[row + 1]; i += 64) sum += va[i] * x[ci[i]];
  for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;  // BUG
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x == 0) y[row] = sums[0] + sums[1];  // BUG
}
