// The number of an element of C does not fit 32 bits from row 2^32 / N on: it is that of another.
// launch: spmm<<<ceil(num_rows * 4 / 128), 128>>>(row_offsets, columns, values, B, C, num_rows, dense_cols)
__global__ void spmm(const int* rp, const int* ci, const float* va, const float* B, float* C, unsigned m, unsigned N) {
  const unsigned row = (blockIdx.x * 128 + threadIdx.x) / 4;
  if (row >= m) return;
  for (unsigned j = threadIdx.x % 4; j < N; j += 4) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * B[(size_t)ci[i] * N + j];
    C[row * N + j] = sum;  // BUG
  }
}
