// Right kernels. Each begins with a line of four dashes and its name.

// ---- scalar
// launch: <<<ceil(num_rows / 128), 128>>>
__global__ void spmv(const int* __restrict__ row_ptr, const int* __restrict__ col_idx, const float* __restrict__ values,
                     const float* __restrict__ dense_matrix, float* __restrict__ output, int num_rows, int dense_cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= num_rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * dense_matrix[col_idx[i]];
  output[row] = sum;
}

// ---- vector
// launch: spmv_vector<<<ceil(num_rows * 32 / 256), 256>>>(y, x, values, columns, row_offsets, num_rows);
__device__ float warp_sum(float sum) {
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  return sum;
}
extern "C" __global__ void __launch_bounds__(256)
    spmv_vector(float* y, const float* x, const float* vals, const unsigned* cols, const unsigned* ptr, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (unsigned i = ptr[row] + lane; i < ptr[row + 1]; i += 32) sum += vals[i] * x[cols[i]];
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}

// ---- spmm
// launch: spmm<<<dim3(ceil(num_rows / 4), ceil(dense_cols / 32)), dim3(32, 4)>>>(
//     row_offsets, columns, values, B, C, num_rows, dense_cols)
__global__ void spmm(const int* row_ptr, const int* col_idx, const float* values, const float* B, float* C, int m,
                     int n) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, column = blockIdx.y * 32 + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * B[(size_t)col_idx[i] * n + column];
  C[(size_t)row * n + column] = sum;
}

// ---- shared_of_both_kinds
// launch: <<<ceil(num_rows / 128), 128, 32768>>>
// 64 KiB of shared memory, of which the host has to ask for the half that the launch gives, although that half is no
// more than every kernel may use.
__global__ void shared_of_both_kinds(const int* row_ptr, const int* col_idx, const float* values, const float* x,
                                     float* y, int num_rows) {
  constexpr int bytes = 32768, last = bytes / sizeof(float) - 1;
  __shared__ float declared[last + 1];
  extern __shared__ float given[];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  if (row < num_rows)
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
  declared[last - threadIdx.x] = sum;
  __syncthreads();
  given[last - threadIdx.x] = declared[last - (threadIdx.x ^ 1)];
  __syncthreads();
  if (row < num_rows) y[row] = given[last - (threadIdx.x ^ 1)];
}

// ---- claimed
// launch: <<<1, 256>>>
// Compare-and-swap on shared memory, for which the compiler declares a variable of its own.
__global__ void claimed(const int* row_ptr, const int* col_idx, const float* values, const float* x, float* y,
                        int num_rows) {
  __shared__ int next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  while (true) {
    const int row = *const_cast<volatile int*>(&next);
    if (row >= num_rows) return;
    if (atomicCAS(&next, row, row + 1) != row) continue;
    float sum = 0;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
    y[row] = sum;
  }
}

// ---- waits
// launch: <<<ceil(num_rows / 128), 128>>>
// Begins early, and reads what no earlier kernel writes before it waits.
__global__ void spmv(const int* row_ptr, const int* col_idx, const float* values, const float* x, float* y,
                     int num_rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= num_rows) return;
  const int first = row_ptr[row], end = row_ptr[row + 1];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  float sum = 0;
  for (int i = first; i < end; ++i) sum += values[i] * x[col_idx[i]];
  y[row] = sum;
}

// ---- waits_for_the_grid
// launch: <<<16, 64>>>
// Blocks clear rows for each other, and wait for all before they add to them.
#include <cooperative_groups.h>
__global__ void waits_for_the_grid(const int* row_ptr, const int* col_idx, const float* values, const float* x,
                                   float* y, int num_rows, int nnz) {
  const auto grid = cooperative_groups::this_grid();
  const int first = grid.thread_rank(), all = grid.size();
  for (int row = first; row < num_rows; row += all) y[num_rows - 1 - row] = 0;
  grid.sync();
  for (int row = first; row < num_rows; row += all) {
    float sum = y[row];
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
    y[row] = sum;
  }
  grid.sync();
}
