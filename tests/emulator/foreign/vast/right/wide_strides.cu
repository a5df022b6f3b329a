// Threads take rows in strides of the grid.
// launch: spmm<<<1024, 128>>>(row_offsets, columns, values, B, C, num_rows, dense_cols)
__global__ void spmm(const int* rp, const int* ci, const float* va, const float* B, float* C, int m, int N) {
  for (int row = blockIdx.x; row < m; row += gridDim.x) {
    for (int j = threadIdx.x * 4; j < N; j += 512) {
      float4 sum = make_float4(0, 0, 0, 0);
      for (int i = rp[row]; i < rp[row + 1]; ++i) {
        const float4 b = *(const float4*)(B + (size_t)ci[i] * N + j);
        sum.x += va[i] * b.x;
        sum.y += va[i] * b.y;
        sum.z += va[i] * b.z;
        sum.w += va[i] * b.w;
      }
      *(float4*)(C + (size_t)row * N + j) = sum;
    }
  }
}
