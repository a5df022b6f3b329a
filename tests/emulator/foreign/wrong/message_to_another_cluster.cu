// The accesses of the flag are of the cluster's scope; the reader is in another cluster.
// launch: spmv<<<ceil(num_rows / 64) * 4, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float value[4096];
__device__ unsigned flag[4096];
__global__ void __cluster_dims__(2, 1, 1)
    spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int side = blockIdx.x / 2 % 2, row = (blockIdx.x / 4 * 2 + blockIdx.x % 2) * 32 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (side == 0) {
    value[row] = sum;  // BUG
    asm volatile("st.release.cluster.global.u32 [%0], 1;" ::"l"(flag + row) : "memory");
  } else {
    unsigned seen = 0;
    while (!seen) asm volatile("ld.relaxed.cluster.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag + row) : "memory");
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    y[row] = sum + value[row];  // BUG
    flag[row] = 0;
  }
}
