// A warp computes products for two that add them, in two buffers: each has a barrier that says it is full, and one that
// says it is empty.
// launch: spmv<<<ceil(num_rows / 64), 96>>>(row_offsets, columns, values, x, y, num_rows)
__device__ void wait(int barrier) { asm volatile("bar.sync %0, 96;" ::"r"(barrier) : "memory"); }
__device__ void arrive(int barrier) { asm volatile("bar.arrive %0, 96;" ::"r"(barrier) : "memory"); }
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float products[2][64];
  const int thread = threadIdx.x, first_row = blockIdx.x * 64, last_row = min(first_row + 64, n);
  const int first = rp[first_row], last = rp[last_row], tiles = (last - first + 63) / 64;
  if (thread < 32) {
    for (int tile = 0; tile < tiles; ++tile) {
      if (tile >= 2) wait(3 + tile % 2);
      for (int j = thread; j < 64; j += 32) {
        const int i = first + tile * 64 + j;
        products[tile % 2][j] = i < last ? va[i] * x[ci[i]] : 0;
      }
      __threadfence_block();
      arrive(1 + tile % 2);
    }
  } else {
    const int row = first_row + thread - 32;
    const int begin = row < last_row ? rp[row] : 0, end = row < last_row ? rp[row + 1] : 0;
    float sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      wait(1 + tile % 2);
      const int from = first + tile * 64;
      for (int i = max(begin, from); i < min(end, from + 64); ++i) sum += products[tile % 2][i - from];
      if (tile + 2 < tiles) arrive(3 + tile % 2);
    }
    if (row < last_row) y[row] = sum;
  }
}
