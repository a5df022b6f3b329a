// Two blocks for each multiprocessor meet at a barrier of the grid, but the numbers that are held over it take so many
// registers that a multiprocessor has room for one.
// launch: spmv<<<264, 512>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ unsigned count;
__device__ volatile unsigned sense;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  int all[80];
#pragma unroll
  for (int k = 0; k < 80; ++k) all[k] = nnz > 0 ? ci[(me + k * 7) % nnz] : 0;
  for (int row = me; row < n; row += threads) y[row] = 0;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned old = sense;
    __threadfence();
    if (atomicInc(&count, gridDim.x - 1) == gridDim.x - 1) {
      __threadfence();
      sense = old + 1;
    } else {
      while (sense == old) __nanosleep(100);  // BUG
    }
    __threadfence();
  }
  __syncthreads();
  unsigned mixed = 0;
#pragma unroll
  for (int k = 0; k < 80; ++k) mixed = mixed * 31 + all[79 - k];
  const float more = mixed == 123456789 ? 1e-30f : 0;
  for (int row = me; row < n; row += threads) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) atomicAdd(&y[row], va[i] * x[ci[i]] + more);
  }
}
