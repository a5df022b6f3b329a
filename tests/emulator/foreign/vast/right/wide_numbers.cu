// Numbers of elements have 64 bits.
// launch: spmm<<<num_rows, 128>>>(row_offsets, columns, values, B, C, num_rows, dense_cols)
__global__ void spmm(const int* rp, const int* ci, const float* va, const float* B, float* C, int m, int N) {
  const size_t row = blockIdx.x;
  for (int j = threadIdx.x; j < N; j += 128) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * B[(size_t)ci[i] * N + j];
    C[row * N + j] = sum;
  }
}
