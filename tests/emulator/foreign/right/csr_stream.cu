// A block stages the products of its rows in shared memory, then a thread a row adds them up.
// launch: spmv<<<ceil(num_rows / 32), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float products[256];
  const int first = blockIdx.x * 32, last = min(first + 32, n);
  const int row = first + threadIdx.x;
  float sum = 0;
  for (int start = rp[first]; start < rp[last]; start += 256) {
    for (int i = threadIdx.x; i < 256 && start + i < rp[last]; i += blockDim.x) {
      products[i] = va[start + i] * x[ci[start + i]];
    }
    __syncthreads();
    if (row < last) {
      const int from = max(rp[row], start), to = min(rp[row + 1], start + 256);
      for (int i = from; i < to; ++i) sum += products[i - start];
    }
    __syncthreads();
  }
  if (row < last) y[row] = sum;
}
