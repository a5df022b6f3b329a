#define BLOCK 32
#define SHARED_BYTES (BLOCK * sizeof(float))
// launch: spmv<<<n, BLOCK, SHARED_BYTES>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  extern __shared__ float sums[];
  const int row = blockIdx.x;
  float sum = 0;
  for (int i = rp[row] + threadIdx.x; i < rp[row + 1]; i += blockDim.x) sum += va[i] * x[ci[i]];
  sums[threadIdx.x] = sum;
  for (int by = blockDim.x / 2; by > 0; by /= 2) {
    __syncthreads();
    if (threadIdx.x < by) sums[threadIdx.x] += sums[threadIdx.x + by];
  }
  if (threadIdx.x == 0 && row < n) y[row] = sums[0];
}
