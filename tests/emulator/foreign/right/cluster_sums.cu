// Four blocks of a cluster share two rows' entries, and add their sums to those of the first, which waits for all.
// launch: spmv<<<ceil(num_rows / 2) * 4, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
__global__ void __cluster_dims__(4, 1, 1)
    spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[2];
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const int which = threadIdx.x / 32, row = blockIdx.x / 4 * 2 + which;
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  cluster_sync();
  float sum = 0;
  if (row < n) {
    for (int i = rp[row] + rank * 32 + threadIdx.x % 32; i < rp[row + 1]; i += 128) sum += va[i] * x[ci[i]];
  }
  for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) {
    float* first;
    asm("mapa.u64 %0, %1, 0;" : "=l"(first) : "l"(&sums[which]));
    atomicAdd(first, sum);
  }
  cluster_sync();
  if (rank == 0 && threadIdx.x % 32 == 0 && row < n) y[row] = sums[which];
}
