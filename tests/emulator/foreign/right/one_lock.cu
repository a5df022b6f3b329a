// All threads take one lock in turn to count the rows that they are done with.
// launch: spmv<<<ceil(num_rows / 256), 256>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int lock, rows_done;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 256 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence();
      rows_done = rows_done + 1;
      if (rows_done == n) rows_done = 0;
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
}
