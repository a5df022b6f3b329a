// The first block sets the queue back while others may have taken rows of it, which are then added to the output twice.
// launch: spmv<<<8, 64>>>(row_offsets, columns, values, x, y, alpha, beta, num_rows)
__device__ unsigned next;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, float alpha, float beta,
                     int n) {
  __shared__ unsigned taken;
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(&next, 0);
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(&next, 64);
    __syncthreads();
    if (taken >= n) break;
    const int row = taken + threadIdx.x;
    if (row < n) {
      float sum = 0;
      for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
      y[row] = beta == 0 ? alpha * sum : alpha * sum + beta * y[row];  // BUG
    }
  }
}
