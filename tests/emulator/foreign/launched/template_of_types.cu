typedef float real;
using offset = unsigned int;
template <typename Index, class Value, int kLanes = 8>
__global__ void spmv(Index rows, const Index* __restrict__ offsets, const int* __restrict__ columns, const Value* values, const Value* x, Value* y);

// launch: spmv<offset, real><<<dim3((rows * 8 + 127) / 128), dim3(128)>>>(num_rows, row_offsets, columns, values, x, y)
template <typename Index, class Value, int kLanes>
__global__ void spmv(Index rows, const Index* __restrict__ offsets, const int* __restrict__ columns, const Value* values, const Value* x, Value* y) {
  const Index row = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  Value sum = 0;
  if (row < rows)
    for (Index i = offsets[row] + lane; i < offsets[row + 1]; i += kLanes) sum += values[i] * x[columns[i]];
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step, kLanes);
  if (row < rows && lane == 0) y[row] = sum;
}
template __global__ void spmv<offset, real, 8>(offset, const offset*, const int*, const real*, const real*, real*);
