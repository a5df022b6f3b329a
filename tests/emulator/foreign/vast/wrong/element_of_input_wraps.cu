// The number of an element of B does not fit an int from column 2^31 / N on.
// launch: spmm<<<num_rows, 128>>>(row_offsets, columns, values, B, C, num_rows, dense_cols)
__global__ void spmm(const int* rp, const int* ci, const float* va, const float* B, float* C, int m, int N) {
  const size_t row = blockIdx.x;
  for (int j = threadIdx.x; j < N; j += 128) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * B[ci[i] * N + j];  // BUG
    C[row * N + j] = sum;
  }
}
