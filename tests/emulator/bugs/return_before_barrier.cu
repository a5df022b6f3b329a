// Threads without a row return before the barriers that the others need.
// launch: <<<1, 128>>>
// argument: x read-only f32 100 random
// argument: y output f32 100
// argument: rows i32 value 100
extern "C" __global__ void return_before_barrier(const float* x, float* y, int rows) {
  __shared__ float tile[128];
  const int row = threadIdx.x;
  if (row >= rows) return;
  tile[row] = x[row];
  __syncthreads();  // BUG: divergent-barrier, deadlock
  y[row] = tile[rows - 1 - row];
}
