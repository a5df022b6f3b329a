// A reduction of the warp depends on shared memory that only the first lane of each warp has written.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ int marks[64];
  const int row = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32;
  if (lane == 0) marks[threadIdx.x] = 0;
  __syncthreads();
  const int known = __reduce_add_sync(0xffffffffu, marks[threadIdx.x]);  // BUG
  float sum = 0;
  if (row < n) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
    y[row] = known == 12345 ? 0 : sum;  // BUG
  }
}
