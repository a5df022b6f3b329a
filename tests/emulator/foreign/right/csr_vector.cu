// A warp a row, the sum handed to all lanes, all of which store it.
// launch: spmv<<<ceil(num_rows / 4), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* __restrict__ rp, const int* __restrict__ ci, const float* __restrict__ va,
                     const float* __restrict__ x, float* __restrict__ y, int n) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * __ldg(&x[ci[i]]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  y[row] = sum;
}
