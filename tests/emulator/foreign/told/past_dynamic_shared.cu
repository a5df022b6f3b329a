// Two arrays in dynamic shared memory, which is large enough for one.
// SAYS: its size is said at line 3
// launch: spmv<<<ceil(num_rows / 64), 64, 64 * 4>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  extern __shared__ int ends[];
  int* begins = ends + 64;
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= rows) return;
  begins[threadIdx.x] = offsets[row];
  ends[threadIdx.x] = offsets[row + 1];
  float sum = 0;
  for (int i = begins[threadIdx.x]; i < ends[threadIdx.x]; ++i) sum += values[i] * x[columns[i]];
  y[row] = sum;
}
