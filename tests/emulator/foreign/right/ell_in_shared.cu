// Rows are packed into a slab of fixed width in shared memory, with padding that is skipped; long rows take several.
// launch: spmv<<<ceil(num_rows / 32), 32, 2048>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  extern __shared__ int slab[];
  int* columns = slab;
  float* entries = (float*)(slab + 256);
  const int row = blockIdx.x * 32 + threadIdx.x;
  const int begin = row < n ? rp[row] : 0, end = row < n ? rp[row + 1] : 0;
  float sum = 0;
  for (int base = begin; __any_sync(0xffffffffu, base < end); base += 8) {
    for (int k = 0; k < 8; ++k) {
      columns[k * 32 + threadIdx.x] = base + k < end ? ci[base + k] : -1;
      entries[k * 32 + threadIdx.x] = base + k < end ? va[base + k] : 0;
    }
    for (int k = 0; k < 8; ++k) {
      const int column = columns[k * 32 + threadIdx.x];
      if (column >= 0) sum += entries[k * 32 + threadIdx.x] * x[column];
    }
  }
  if (row < n) y[row] = sum;
}
