// Threads leave a product in shared memory, those without a row are done then, and lanes behind a store vote once more.
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ float scale[32];
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (threadIdx.x % 2 == 0) scale[threadIdx.x] = 1;
  else scale[threadIdx.x] = 2;
  __syncthreads();
  if (row >= rows) return;
  const bool is_odd = __any_sync(~0u, scale[threadIdx.x] == 2) && threadIdx.x % 2;
  float sum = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[columns[i]];
  const float scaled = sum * scale[threadIdx.x];
  y[row] = (__ballot_sync(~0u, true) >> threadIdx.x & 1) && is_odd ? scaled / 2 : scaled;
}
