// launch: <<<ceil(num_rows / 128), 128>>>
__global__ void spmv(const int* __restrict__ row_ptr, const int* col_idx, const float* values,
                     const float* dense_matrix, float* output, int num_rows, int dense_cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < num_rows) output[row] = 0; /* "{" */
}
