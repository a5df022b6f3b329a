typedef long long index_t;
#define REAL float
// launch: spmv<<<(index_t)((n + 127) / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const index_t* rp, const index_t* ci, const REAL* va, const REAL* x, REAL* y, index_t n) {
  const index_t row = (index_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  REAL sum = 0;
  for (index_t i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
