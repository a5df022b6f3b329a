// A block for each row, with a reduction in shared memory.
// launch: <<<24, 128>>>
// matrix: rows=24 columns=900 mean=150
// argument: row_ptr read-only u32 csr-offsets
// argument: columns read-only u32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 900 random
// argument: y output f32 24
// expect: y spmv x
extern "C" __global__ void block_per_row(const unsigned* row_ptr, const unsigned* columns, const float* values, const float* x, float* y) {
  __shared__ float partial[128];
  const int row = blockIdx.x, t = threadIdx.x;
  float sum = 0;
  for (unsigned i = row_ptr[row] + t; i < row_ptr[row + 1]; i += blockDim.x) sum += values[i] * x[columns[i]];
  partial[t] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (t < step) partial[t] += partial[t + step];
    __syncthreads();
  }
  if (t == 0) y[row] = partial[0];
}
