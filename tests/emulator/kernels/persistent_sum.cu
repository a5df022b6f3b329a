// Shared memory reused for several reductions, with barriers before and after.
// launch: <<<1, 128>>>
// matrix: rows=9 columns=500 mean=200
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 500 random
// argument: y output f32 9
// argument: rows i32 value 9
// expect: y spmv x
extern "C" __global__ void persistent_sum(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ volatile float sums[4];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int row = 0; row < rows; ++row) {
    float sum = 0;
    for (int i = row_ptr[row] + threadIdx.x; i < row_ptr[row + 1]; i += 128) sum += values[i] * x[columns[i]];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) y[row] = sums[0] + sums[1] + sums[2] + sums[3];
    __syncthreads();
  }
}
