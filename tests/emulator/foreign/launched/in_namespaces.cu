// launch: sparse::detail::spmv<<<ceil(num_rows / block), block>>>(row_offsets, columns, values, x, y, num_rows)
namespace sparse {
using index_t = unsigned;
typedef float real_t;
constexpr int block = 128;
namespace detail {
__global__ void spmv(index_t const* ptr, index_t const* ind, real_t const* val, real_t const* x, real_t* y, index_t n) {
  const index_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  real_t sum = 0;
  for (index_t i = ptr[row]; i < ptr[row + 1]; ++i) sum += val[i] * x[ind[i]];
  y[row] = sum;
}
}  // namespace detail
namespace other {
__global__ void spmv(float* y) { y[0] = 1; }
}
}  // namespace sparse
