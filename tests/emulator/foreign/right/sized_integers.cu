// Indices and sizes are of <cstdint>'s types, as in most libraries.
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__global__ void spmv(const int32_t* __restrict__ rp, const int32_t* __restrict__ ci, const float* __restrict__ va,
                     const float* __restrict__ x, float* __restrict__ y, int32_t n, int64_t nnz) {
  const int32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int64_t i = rp[row]; i < rp[row + 1] && i < nnz; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
