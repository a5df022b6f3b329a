// Lanes of one row find each other by a match and add up their suffix. What the last ones read of lanes that do not
// take part is not used.
// launch: spmv<<<ceil(num_rows / 64), 128>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int ROWS = 16;

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float sums[4][ROWS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (blockIdx.x * 4 + warp) * ROWS;
  if (first >= n) return;
  const int rows = min(ROWS, n - first);
  if (lane < ROWS) sums[warp][lane] = 0;
  __syncwarp();
  const int end = rp[first + rows];
  for (int i = rp[first] + lane; __any_sync(~0u, i < end); i += 32) {
    const unsigned active = __ballot_sync(~0u, i < end);
    if (i < end) {
      int row = 0;
      while (rp[first + row + 1] <= i) ++row;
      float sum = va[i] * x[ci[i]];
      const unsigned peers = __match_any_sync(active, row);
      const int rank = __popc(peers & ((1u << lane) - 1)), size = __popc(peers);
      for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_down_sync(active, sum, step);
        if (rank + step < size) sum += other;
      }
      if (rank == 0) sums[warp][row] += sum;
    }
    __syncwarp();
  }
  if (lane < rows) y[first + lane] = sums[warp][lane];
}
