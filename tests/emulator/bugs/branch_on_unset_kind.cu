// A block notes in shared memory how it handles its row, and reads the note also for short rows, for which there is none.
// launch: <<<8, 32>>>
// matrix: rows=8 columns=200 mean=20
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 8
extern "C" __global__ void branch_on_unset_kind(const int* row_ptr, const float* values, float* y) {
  __shared__ int kind;
  const int begin = row_ptr[blockIdx.x], end = row_ptr[blockIdx.x + 1];
  if (threadIdx.x == 0 && end - begin > 16) kind = end - begin > 32 ? 2 : 1;
  __syncthreads();
  float sum = 0;
  if (kind == 2) {  // BUG: uninitialised
    for (int i = begin + threadIdx.x; i < end; i += 32) sum += values[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  } else if (threadIdx.x == 0) {
    for (int i = begin; i < end; ++i) sum += values[i];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
