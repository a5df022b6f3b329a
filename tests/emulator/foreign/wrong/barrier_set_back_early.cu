// The barrier's counter is set back after its flag is raised: a block that is already at the next barrier is lost.
// launch: spmv<<<6, 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ volatile unsigned count, sense;
__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned old = sense;
    __threadfence();
    if (atomicAdd((unsigned*)&count, 1u) == gridDim.x - 1) {
      __threadfence();
      sense = old + 1;
      count = 0;  // BUG
    } else {
      while (sense == old) {  // BUG
      }
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  for (int row = me; row < n; row += threads) y[row] = 0;
  meet();
  for (int row = me; row < n; row += threads) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) y[row] += va[i] * x[ci[i]];
  }
  meet();
}
