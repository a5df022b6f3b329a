// Warps take rows from a counter in a variable of the module.
// launch: <<<3, 64>>>
// matrix: rows=100 columns=200 mean=25
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 200 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
__device__ int next_row;
extern "C" __global__ void work_queue(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int lane = threadIdx.x % 32;
  while (true) {
    int row = 0;
    if (lane == 0) row = atomicAdd(&next_row, 1);
    row = __shfl_sync(0xffffffffu, row, 0);
    if (row >= rows) return;
    float sum = 0;
    for (int i = row_ptr[row] + lane; i < row_ptr[row + 1]; i += 32) sum += values[i] * x[columns[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
  }
}
