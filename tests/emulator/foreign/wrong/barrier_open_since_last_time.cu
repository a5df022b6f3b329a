// A barrier of the grid whose count is never set back: from the second launch on it is open, and products are added to rows
// that others have not cleared yet.
__device__ unsigned arrived;
// launch: spmv<<<24, 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__global__ void spmv(const int* row_ptr, const int* col, const float* val, const float* x, float* y, int rows, int nnz) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  for (int row = thread; row < rows; row += threads) y[row] = 0;  // BUG
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived, 1u);
    while (*(volatile unsigned*)&arrived < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  for (int i = thread; i < nnz; i += threads) {
    int first = 0, last = rows;
    while (last - first > 1) {
      const int middle = (first + last) / 2;
      if (row_ptr[middle] <= i) first = middle;
      else last = middle;
    }
    atomicAdd(&y[first], val[i] * x[col[i]]);  // BUG
  }
}
