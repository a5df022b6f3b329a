// The last block sets the queue back while others may still take rows of it, and so the next launch loses some.
// launch: spmv<<<8, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ unsigned next;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ unsigned taken;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) taken = atomicAdd(&next, 64);
    __syncthreads();
    const int row = taken + threadIdx.x;
    if (taken >= n) break;
    if (row < n) {
      float sum = 0;
      for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
      y[row] = sum;
    }
  }
  if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1) atomicExch(&next, 0);
}
