// Rows whose entries are added up in double precision in shared memory, by the loop over a compare-and-swap that CUDA's
// manual gives for devices without such an atomic: its first read is a plain one.
__device__ double add(double* address, double value) {
  unsigned long long* bits = (unsigned long long*)address;
  unsigned long long old = *bits, seen;
  do {
    seen = old;
    old = atomicCAS(bits, seen, __double_as_longlong(value + __longlong_as_double(seen)));
  } while (seen != old);
  return __longlong_as_double(old);
}
// launch: spmv<<<(num_rows + 7) / 8, 256>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* row_ptr, const int* col, const float* val, const float* x, float* y, int rows) {
  __shared__ double sums[8];
  if (threadIdx.x < 8) sums[threadIdx.x] = 0;
  __syncthreads();
  const int first = blockIdx.x * 8, last = min(first + 8, rows);
  for (int i = row_ptr[first] + threadIdx.x; i < row_ptr[last]; i += blockDim.x) {
    int row = first;
    while (row_ptr[row + 1] <= i) ++row;
    add(&sums[row - first], (double)val[i] * x[col[i]]);
  }
  __syncthreads();
  if (threadIdx.x < last - first) y[first + threadIdx.x] = (float)sums[threadIdx.x];
}
