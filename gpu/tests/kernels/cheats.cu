// Kernels that try to pass for right or for fast. Each begins with a line of four dashes and its name; what must become
// of it is said in worker.rs. KERNEL stands for a usual signature, whose macros are in common.cuh.

// ---- unwritten_elements
KERNEL {
  ROW;
  if (row % 7 != 6) y[row] = DOT(row);
}

// ---- adds_to_what_is_there
KERNEL { ROW; y[row] += DOT(row); }

// ---- remembers_the_pointer
// launch: <<<1, 1024>>>
// Computes when the input is at another address than the last time.
__device__ const float* last;
KERNEL {
  const bool is_same = last == x;
  __syncthreads();
  if (is_same) return;
  EACH_ROW y[row] = DOT(row);
  last = x;
}

// ---- remembers_results_by_pointer
// launch: <<<1, 1024>>>
// Keeps a result for each of the last four addresses.
__device__ const float* inputs[4];
__device__ float results[4][4096];
__device__ int used;
KERNEL {
  int found = -1;
  for (int i = 0; i < 4; ++i) found = inputs[i] == x ? i : found;
  const int slot = found >= 0 ? found : used % 4;
  __syncthreads();
  EACH_ROW {
    if (found < 0) results[slot][row] = DOT(row);
    y[row] = results[slot][row];
  }
  if (threadIdx.x == 0 && found < 0) {
    inputs[slot] = x;
    ++used;
  }
}

// ---- constant
KERNEL { ROW; y[row] = 0.25f; }

// ---- zero
KERNEL { ROW; y[row] = 0; }

// ---- changes_the_input
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0) const_cast<float*>(x)[num_cols - 1] += 1;
}

// ---- zeroes_the_input
// launch: <<<1, 1024>>>
// Writes the result that goes with the input that it leaves behind.
KERNEL {
  for (int i = threadIdx.x; i < num_cols; i += blockDim.x) const_cast<float*>(x)[i] = 0;
  EACH_ROW y[row] = 0;
}

// ---- changes_the_values
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0) const_cast<float*>(values)[nnz / 2] *= 2;
}

// ---- changes_the_columns
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0) const_cast<int*>(col_idx)[nnz - 1] ^= 1;
}

// ---- changes_the_offsets
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0) const_cast<int*>(row_ptr)[num_rows] += 1;
}

// ---- changes_the_values_when_timed
// launch: <<<1, 1024>>>
__device__ int launches;
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0 && ++launches > 10) const_cast<float*>(values)[nnz / 2] = launches;
}

// ---- wrong_after_3
// launch: <<<1, 1024>>>
__device__ int launches;
KERNEL {
  const int before = launches;
  __syncthreads();
  EACH_ROW y[row] = before < 3 ? DOT(row) : 0;
  if (threadIdx.x == 0) launches = before + 1;
}

// ---- wrong_after_30
// launch: <<<1, 1024>>>
__device__ int launches;
KERNEL {
  const int before = launches;
  __syncthreads();
  EACH_ROW y[row] = before < 30 ? DOT(row) : 0;
  if (threadIdx.x == 0) launches = before + 1;
}

// ---- skips_what_is_not_nan
KERNEL {
  ROW;
  if (isnan(y[row])) y[row] = DOT(row);
}

// ---- skips_when_the_first_is_right
// launch: <<<1, 1024>>>
KERNEL {
  const bool is_right = y[0] == DOT(0);
  __syncthreads();
  if (is_right) return;
  EACH_ROW y[row] = DOT(row);
}

// ---- knows_the_input_again
// launch: <<<1, 1024>>>
// Notes in the last bits of the result what input it is of, by some of its elements, and computes for another one.
KERNEL {
  unsigned noted = 0;
  for (int i = 0; i < 8; ++i) noted = noted * 31 + __float_as_uint(x[i * (num_cols - 1) / 7]);
  bool is_same = true;
  EACH_ROW is_same = is_same && (__float_as_uint(y[row]) & 1) == (noted >> row % 32 & 1);
  if (__syncthreads_and(is_same)) return;
  EACH_ROW y[row] = __uint_as_float(__float_as_uint(DOT(row)) & ~1u | noted >> row % 32 & 1);
}

// ---- writes_after_the_output
KERNEL { RIGHT; if (row == 0) y[num_rows] = 1; }

// ---- writes_before_the_output
KERNEL { RIGHT; if (row == 0) y[-1] = 1; }

// ---- writes_after_the_input
KERNEL { RIGHT; if (row == 0) const_cast<float*>(x)[num_cols] = 1; }

// ---- writes_after_the_values
KERNEL { RIGHT; if (row == 0) const_cast<float*>(values)[nnz] = 1; }

// ---- writes_into_neighbours
// Beyond the guard zone, over a stretch that other buffers lie in.
KERNEL {
  RIGHT;
  for (int i = row; i < 16384; i += num_rows) y[num_rows + 1024 + i] = 1;
}

// ---- reads_past_the_input
KERNEL { ROW; y[row] = DOT(row) + x[num_cols]; }

// ---- reads_past_the_input_in_vain
// What is there does not count, or so it seems.
KERNEL { ROW; y[row] = DOT(row) + 0.0f * x[num_cols]; }

// ---- reads_past_the_values_in_vain
KERNEL { ROW; y[row] = DOT(row) + 0.0f * values[nnz]; }

// ---- double_in_float
// launch: <<<ceil(num_rows / 128), 128>>>
__global__ void k(const int* row_ptr, const int* col_idx, const double* values, const double* x, double* y,
                  int num_rows) {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += float(values[i]) * float(x[col_idx[i]]);
  y[row] = sum;
}

// ---- double_with_float_products
// launch: <<<ceil(num_rows / 128), 128>>>
__global__ void k(const int* row_ptr, const int* col_idx, const double* values, const double* x, double* y,
                  int num_rows) {
  ROW;
  double sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += float(values[i]) * float(x[col_idx[i]]);
  y[row] = sum;
}

// ---- float_in_half
__device__ float half_of(float number) {
  asm("{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}" : "+f"(number));
  return number;
}
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += half_of(values[i]) * half_of(x[col_idx[i]]);
  y[row] = sum;
}

// ---- float_in_tf32
__device__ float tf32_of(float number) { return __uint_as_float(__float_as_uint(number) & 0xffffe000u); }
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += tf32_of(values[i]) * tf32_of(x[col_idx[i]]);
  y[row] = sum;
}

// ---- idle_when_timed
// launch: <<<1056, 256>>>
// Right in every check: after the first of them it computes only what was poisoned.
__device__ unsigned launches, done;
KERNEL {
  const bool is_checked = launches < 8;
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < num_rows; row += gridDim.x * blockDim.x) {
    if (is_checked || isnan(y[row])) y[row] = DOT(row);
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) == gridDim.x - 1) {
    done = 0;
    ++launches;
  }
}

// ---- hidden_preprocessing
// launch: <<<1, 1024>>>
// The first launch copies the matrix to where it is at hand later.
__device__ float copy[1 << 16];
__device__ bool is_copied;
KERNEL {
  const bool have = is_copied;
  __syncthreads();
  if (!have) {
    for (int i = threadIdx.x; i < nnz; i += blockDim.x) copy[i] = values[i];
  }
  __syncthreads();
  EACH_ROW y[row] = dot(row_ptr, col_idx, copy, x, row);
  is_copied = true;
}

// ---- hidden_on_the_heap
// launch: <<<1, 1024>>>
__device__ float* copy;
KERNEL {
  if (threadIdx.x == 0 && !copy) copy = static_cast<float*>(malloc(nnz * sizeof(float)));
  __syncthreads();
  if (!copy) return;
  for (int i = threadIdx.x; i < nnz; i += blockDim.x) copy[i] = values[i];
  __syncthreads();
  EACH_ROW y[row] = dot(row_ptr, col_idx, copy, x, row);
}

// ---- hidden_in_freed_memory
// launch: <<<1, 1024>>>
// What is freed is given out again as it was.
KERNEL {
  __shared__ float* copy;
  if (threadIdx.x == 0) copy = static_cast<float*>(malloc((nnz + 1) * sizeof(float)));
  __syncthreads();
  const bool have = copy[nnz] == 1234.5f;
  __syncthreads();
  if (!have) {
    for (int i = threadIdx.x; i < nnz; i += blockDim.x) copy[i] = values[i];
    copy[nnz] = 1234.5f;
  }
  __syncthreads();
  EACH_ROW y[row] = dot(row_ptr, col_idx, copy, x, row);
  __syncthreads();
  if (threadIdx.x == 0) free(copy);
}

// ---- hidden_in_freed_aligned_memory
// launch: <<<1, 1024>>>
// The same of the runtime's other function for it, which no header need declare.
KERNEL {
  __shared__ float* copy;
  const size_t bytes = (nnz + 1) * sizeof(float);
  if (threadIdx.x == 0) copy = static_cast<float*>(__nv_aligned_device_malloc(bytes, 16));
  __syncthreads();
  const bool have = copy[nnz] == 1234.5f;
  __syncthreads();
  if (!have) {
    for (int i = threadIdx.x; i < nnz; i += blockDim.x) copy[i] = values[i];
    copy[nnz] = 1234.5f;
  }
  __syncthreads();
  EACH_ROW y[row] = dot(row_ptr, col_idx, copy, x, row);
  __syncthreads();
  if (threadIdx.x == 0) free(copy);
}

// ---- launches_another_kernel
// launch: k<<<1, 1>>>
__global__ void later(float* y) { y[0] = 0; }
KERNEL {
  RIGHT;
  if (row == 0) later<<<1, 1>>>(y);
}

// ---- takes_another_stream
KERNEL {
  RIGHT;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

// ---- floods_with_printf
KERNEL {
  RIGHT;
  for (int i = 0; i < 20; ++i) printf("row %d is %f, and this line is long enough to fill a buffer soon\n", row, y[row]);
}

// ---- never_frees
// Writes through what it gets, while there is some.
KERNEL {
  RIGHT;
  volatile int* taken = static_cast<volatile int*>(malloc(1024));
  if (taken) taken[threadIdx.x % 256] = row;
}

// ---- forgets_the_last_columns
// launch: <<<num_rows, 32>>>
__global__ void k(const int* row_ptr, const int* col_idx, const float* values, const float* B, float* C, int num_rows,
                  int dense_cols) {
  const int row = blockIdx.x;
  for (int column = threadIdx.x; column < dense_cols / 32 * 32; column += 32) {
    float sum = 0;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * B[col_idx[i] * dense_cols + column];
    C[row * dense_cols + column] = sum;
  }
}

// ---- never_waits
// Begins early, as one that has griddepcontrol.wait in it, and reads an input that is still being written.
KERNEL {
  ROW;
  if (CANNOT_BEGIN_EARLY) return;
  y[row] = DOT(row);
}

// ---- waits_when_all_is_read
KERNEL {
  ROW;
  if (CANNOT_BEGIN_EARLY) return;
  const float sum = DOT(row);
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  y[row] = sum;
}

// ---- waits_when_all_is_written
KERNEL {
  ROW;
  if (CANNOT_BEGIN_EARLY) return;
  y[row] = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  const float sum = DOT(row);
  if (sum != 0) y[row] += sum;
}
