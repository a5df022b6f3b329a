// Lengths of rows go through stmatrix, as two numbers of 16 bits.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ alignas(16) unsigned short tile[2][64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * 64 + threadIdx.x;
  const unsigned length = row < n ? rp[row + 1] - rp[row] : 0;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&tile[warp][lane % 8 * 8]);
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(at), "r"(length) : "memory");
  __syncwarp();
  float sum = 0;
  if (row < n) {
    const unsigned got = tile[warp][lane * 2] | (unsigned)tile[warp][lane * 2 + 1] << 16;
    for (int i = rp[row]; i < rp[row] + (int)got; ++i) sum += va[i] * x[ci[i]];
    y[row] = sum;
  }
}
