// The fences around a flag reach no further than their block; the reader is in another.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float value[4096];
__device__ volatile int flag[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  if (side == 0) {
    value[row] = sum;  // BUG
    __threadfence_block();
    flag[row] = 1;
  } else {
    while (flag[row] == 0) {
    }
    __threadfence_block();
    y[row] = sum + value[row];  // BUG
    flag[row] = 0;
  }
}
