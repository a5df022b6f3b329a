// The first of two blocks to come to a row stores, the second adds: the store may come after the addition.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int arrivals[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (atomicXor(&arrivals[row], 1) == 0) {
    *(volatile float*)&y[row] = sum;  // BUG
  } else {
    atomicAdd(&y[row], sum);  // BUG
  }
}
