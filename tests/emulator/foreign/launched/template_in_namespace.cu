// launch: sparse::v1::spmv<128, float><<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
namespace sparse::v1 {
typedef int index_t;
template <int Block, typename T>
__global__ void __launch_bounds__(Block)
spmv(const index_t* ptr, const index_t* ind, const T* val, const T* x, T* y, index_t n) {
  const index_t row = blockIdx.x * Block + threadIdx.x;
  if (row >= n) return;
  T sum{};
  for (index_t i = ptr[row]; i < ptr[row + 1]; ++i) sum += val[i] * x[ind[i]];
  y[row] = sum;
}
}  // namespace sparse::v1
