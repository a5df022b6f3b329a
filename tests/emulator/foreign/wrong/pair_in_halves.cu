// A flag and a value in 64 bits, which the writer stores in two halves and the reader reads as one.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ unsigned long long pairs[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  volatile unsigned* halves = (volatile unsigned*)&pairs[row];
  if (side == 0) {
    halves[0] = __float_as_uint(sum);  // BUG
    halves[1] = 1;                     // BUG
  } else {
    unsigned long long pair;
    do pair = *(volatile unsigned long long*)&pairs[row]; while (pair >> 32 == 0);  // BUG
    y[row] = sum + __uint_as_float((unsigned)pair);
    *(volatile unsigned long long*)&pairs[row] = 0;  // BUG
  }
}
