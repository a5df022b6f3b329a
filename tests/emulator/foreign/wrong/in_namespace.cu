// A kernel in a namespace, that reads one entry too many of each row.
// launch: sparse::spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
namespace sparse {
namespace {
__global__ void spmv(const int* ptr, const int* ind, const float* val, const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = ptr[row]; i <= ptr[row + 1]; ++i) sum += val[i] * x[ind[i]];  // BUG
  y[row] = sum;
}
}
}  // namespace sparse
