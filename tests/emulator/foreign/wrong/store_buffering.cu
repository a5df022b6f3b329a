// Two blocks guard a row by flags of their own, each looking at the other's, as Dekker did; without fences both may
// find the other away, and both store.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ volatile int here[2][4096];
__device__ int count[4096];
__device__ float other[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  here[side][row] = 1;
  if (here[1 - side][row] == 0) return;  // BUG
  y[row] = sum;
}
