// Two blocks share the entries of each row; the last block of all adds up. Every thread fences behind the barrier that
// tells it that its block is the last.
// launch: spmv<<<16, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float partial[2][4096];
__device__ unsigned ticket;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ bool is_last;
  const int half = blockIdx.x % 2;
  for (int row = blockIdx.x / 2 * 64 + threadIdx.x; row < n; row += gridDim.x / 2 * 64) {
    const int middle = (rp[row] + rp[row + 1]) / 2;
    const int from = half ? middle : rp[row], to = half ? rp[row + 1] : middle;
    float sum = 0;
    for (int i = from; i < to; ++i) sum += va[i] * x[ci[i]];
    partial[half][row] = sum;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(&ticket, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  for (int row = threadIdx.x; row < n; row += 64) y[row] = partial[0][row] + partial[1][row];
  if (threadIdx.x == 0) ticket = 0;
}
