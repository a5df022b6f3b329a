// One block zeroes y and then adds each product by an atomic, entry by entry.
// launch: spmv<<<1, 256>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  for (int row = threadIdx.x; row < n; row += blockDim.x) y[row] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < nnz; i += blockDim.x) {
    int low = 0, high = n;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (rp[middle] <= i) low = middle; else high = middle;
    }
    atomicAdd(&y[low], va[i] * x[ci[i]]);
  }
}
