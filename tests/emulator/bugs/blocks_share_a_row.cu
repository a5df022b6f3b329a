// A long row is split over two blocks, which both add to its result without atomics.
// launch: <<<8, 32>>>
// matrix: rows=4 columns=200 mean=60
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 200 random
// argument: y writable f32 4 zero
extern "C" __global__ void blocks_share_a_row(const int* row_ptr, const int* columns, const float* values, const float* x, float* y) {
  const int row = blockIdx.x / 2, half = blockIdx.x % 2;
  float sum = 0;
  for (int i = row_ptr[row] + half * 32 + threadIdx.x; i < row_ptr[row + 1]; i += 64) {
    sum += values[i] * x[columns[i]];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) y[row] += sum;  // BUG: race
}
