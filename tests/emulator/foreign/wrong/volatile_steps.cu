// A warp adds up in volatile shared memory, with a barrier between all steps but two: volatile orders no lanes.
// launch: spmv<<<(num_rows + 3) / 4, 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ volatile float sums[128];
  const int t = threadIdx.x, lane = t % 32, row = blockIdx.x * 4 + t / 32;
  if (row >= rows) return;
  float sum = 0;
  // As far as it would be with entries in all lanes, twice.
  for (int i = offsets[row] + lane, step = 0; step < 2; i += 32, ++step)
    if (i < offsets[row + 1]) sum += values[i] * x[columns[i]];
  sums[t] = sum;
  __syncwarp();
  if (lane < 16) sums[t] = sum = sum + sums[t + 16];
  __syncwarp();
  if (lane < 8) sums[t] = sum = sum + sums[t + 8];
  __syncwarp();
  if (lane < 4) sums[t] = sum = sum + sums[t + 4];
  if (lane < 2) sums[t] = sum = sum + sums[t + 2];  // BUG
  __syncwarp();
  if (lane < 1) y[row] = sum + sums[t + 1];
}
