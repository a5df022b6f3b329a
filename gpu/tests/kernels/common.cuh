// Stands before every kernel of cheats.cu and bad.cu.
__device__ float dot(const int* row_ptr, const int* col_idx, const float* values, const float* x, int row) {
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
  return sum;
}
// The right result of a row.
#define DOT(row) dot(row_ptr, col_idx, values, x, row)
// A row for each thread.
#define ROW                                                  \
  const int row = blockIdx.x * blockDim.x + threadIdx.x;     \
  if (row >= num_rows) return
// All rows by one block.
#define EACH_ROW for (int row = threadIdx.x; row < num_rows; row += blockDim.x)
// A right kernel so far.
#define RIGHT \
  ROW;        \
  y[row] = DOT(row)
// Whether a kernel begins when those before it have ended, however it is launched.
#if __CUDA_ARCH__ >= 900
#define CANNOT_BEGIN_EARLY false
#else
#define CANNOT_BEGIN_EARLY true
#endif
