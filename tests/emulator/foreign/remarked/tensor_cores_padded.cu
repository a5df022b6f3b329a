// A warp for each row, 32 entries at a time, those that are not there as zero times x[0]: values as a matrix of 8 x 4 and
// the elements of x as one of 4 x 8, of whose product the diagonal counts.
// launch: spmv<<<ceil(num_rows / 2), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 2 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  double d0 = 0, d1 = 0;
  for (int from = rp[row]; from < rp[row + 1]; from += 32) {
    const bool live = from + lane < rp[row + 1];
    const double a = live ? va[from + lane] : 0, b = x[live ? ci[from + lane] : 0];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
  }
  double sum = lane / 4 == lane % 4 * 2 ? d0 : lane / 4 == lane % 4 * 2 + 1 ? d1 : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) y[row] = (float)sum;
}
