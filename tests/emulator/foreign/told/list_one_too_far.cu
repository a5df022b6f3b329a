// The list of rows begins with its second element.
// SAYS: other elements of it are stored at line 10
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ int list[65], count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row < rows)
    list[atomicAdd(&count, 1) + 1] = row;
  __syncthreads();
  if (threadIdx.x >= count) return;
  const int own = list[threadIdx.x];
  float sum = 0;
  for (int i = offsets[own]; i < offsets[own + 1]; ++i) sum += values[i] * x[columns[i]];
  y[own] = sum;
}
