// The first of three parts of a row is sent by a flag whose fence comes only after it.
// launch: spmv<<<3 * ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ volatile float part[2][4096];
__device__ volatile unsigned flag[2][4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int third = blockIdx.x % 3, row = blockIdx.x / 3 * 32 + threadIdx.x;
  if (row >= n) return;
  const int first = rp[row], length = rp[row + 1] - first;
  float sum = 0;
  for (int i = first + length * third / 3; i < first + length * (third + 1) / 3; ++i) sum += va[i] * x[ci[i]];
  if (third > 0) {
    while (flag[third - 1][row] == 0) {
    }
    __threadfence();
    sum += part[third - 1][row];  // BUG
    flag[third - 1][row] = 0;
  }
  if (third == 0) {
    part[0][row] = sum;  // BUG
    flag[0][row] = 1;
    __threadfence();
  }
  if (third == 1) {
    part[1][row] = sum;
    __threadfence();
    flag[1][row] = 1;
  }
  if (third == 2) y[row] = sum;
}
