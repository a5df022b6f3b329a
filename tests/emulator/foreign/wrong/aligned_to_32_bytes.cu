// y is taken to be aligned to 32 bytes; operands are aligned to 16.
// launch: spmv<<<ceil(num_rows / 512), 64>>>(row_offsets, columns, values, x, y, num_rows)
struct __align__(16) Four {
  float at[4];
};
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int first = (blockIdx.x * 64 + threadIdx.x) * 8;
  float sums[8];
  for (int k = 0; k < 8; ++k) {
    sums[k] = 0;
    if (first + k >= n) continue;
    for (int i = rp[first + k]; i < rp[first + k + 1]; ++i) sums[k] += va[i] * x[ci[i]];
  }
  // Where the address is no multiple of 32, the pair of sixteen bytes is taken to lie before it.
  float* out = (float*)((unsigned long long)(y + first) / 32 * 32);
  if (first + 8 <= n) {
    *(Four*)out = {sums[0], sums[1], sums[2], sums[3]};
    *(Four*)(out + 4) = {sums[4], sums[5], sums[6], sums[7]};
  } else {
    for (int k = 0; first + k < n; ++k) y[first + k] = sums[k];
  }
}
