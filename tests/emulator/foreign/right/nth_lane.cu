// The second lane of those that a vote names writes the row.
// launch: spmv<<<ceil(num_rows / 2), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ unsigned nth_set(unsigned mask, unsigned base, int offset) {
  unsigned place;
  asm("fns.b32 %0, %1, %2, %3;" : "=r"(place) : "r"(mask), "r"(base), "r"(offset));
  return place;
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 2 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return;
  const unsigned voted = __ballot_sync(0xffffffffu, lane * 3 % 7 != 0);
  float sum = 0;
  for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) sum += va[i] * x[ci[i]];
  for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == nth_set(voted, 0, 2)) y[row] = sum;
}
