// Lanes without a row return, and masks of votes, matches and barriers name them still: those wait for lanes that have
// not ended. What a shuffle gives from one that has is not used.
// launch: spmv<<<(num_rows + 31) / 32, 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ float sums[32];
  const int lane = threadIdx.x, row = blockIdx.x * 32 + lane;
  if (row >= rows) return;
  int i = offsets[row];
  const int end = offsets[row + 1];
  float sum = 0;
  while (__any_sync(0xffffffffu, i < end)) {
    if (i < end) sum += values[i] * x[columns[i]];
    ++i;
  }
  const unsigned present = __ballot_sync(0xffffffffu, true);
  const unsigned alike = __match_any_sync(0xffffffffu, row / 32);
  sums[lane] = sum;
  __syncwarp();
  const float next = __shfl_down_sync(0xffffffffu, sum, 1);
  const bool has_next = present == alike && (present >> lane) > 1;
  const bool is_other = has_next && next == next && next != sums[lane + 1];
  y[row] = is_other ? 0 : sum;
}
