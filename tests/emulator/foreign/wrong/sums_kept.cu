// Sums of the launch before are still there when the next one adds to them.
// KEEPS STATE
// launch: spmv<<<1, 256>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ float sums[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  for (int i = threadIdx.x; i < nnz; i += blockDim.x) {
    int low = 0, high = n;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (rp[middle] <= i) low = middle; else high = middle;
    }
    atomicAdd(&sums[low], va[i] * x[ci[i]]);
  }
  __syncthreads();
  for (int row = threadIdx.x; row < n; row += blockDim.x) y[row] = sums[row];
}
