// Kernels that fail. Each begins with a line of four dashes and its name; what must become of it is said in worker.rs.
// KERNEL stands for a usual signature, whose macros are in common.cuh.

// ---- write_last_of_guard_after_output
KERNEL { RIGHT; if (row == 0) y[num_rows + 1023] = 1; }
// ---- write_first_of_guard_before_output
KERNEL { RIGHT; if (row == 0) y[-1024] = 1; }
// ---- write_before_input
KERNEL { RIGHT; if (row == 0) const_cast<float*>(x)[-1] = 1; }
// ---- write_before_values
KERNEL { RIGHT; if (row == 0) const_cast<float*>(values)[-1] = 1; }
// ---- write_after_columns
KERNEL { RIGHT; if (row == 0) const_cast<int*>(col_idx)[nnz] = 1; }
// ---- write_before_columns
KERNEL { RIGHT; if (row == 0) const_cast<int*>(col_idx)[-1] = 1; }
// ---- write_after_offsets
KERNEL { RIGHT; if (row == 0) const_cast<int*>(row_ptr)[num_rows + 1] = 1; }
// ---- write_before_offsets
KERNEL { RIGHT; if (row == 0) const_cast<int*>(row_ptr)[-1] = 1; }
// ---- write_one_byte_outside
KERNEL { RIGHT; if (row == 0) reinterpret_cast<char*>(y + num_rows)[1] ^= 1; }
// ---- atomic_outside
KERNEL { RIGHT; if (row == 0) atomicExch(y + num_rows + 7, 1.0f); }
// ---- write_into_neighbours_before
KERNEL {
  RIGHT;
  for (int i = row; i < 8192; i += num_rows) y[-1025 - i] = 1;
}
// ---- write_far_after
KERNEL { RIGHT; y[(1ll << 38) + row] = 1; }
// ---- write_far_before
KERNEL { RIGHT; y[-(1ll << 38) - row] = 1; }
// ---- write_null
KERNEL { RIGHT; *reinterpret_cast<volatile float*>(static_cast<long long>(nnz < 0)) = 1; }
// ---- write_kernel_space
KERNEL { RIGHT; *reinterpret_cast<volatile float*>(~0ull << 48) = 1; }
// ---- off_by_one_guard_of_rows
KERNEL {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row <= num_rows) y[row] = row < num_rows ? DOT(row) : 0;
}
// ---- no_guard_of_rows
KERNEL {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  y[row] = row < num_rows ? DOT(row) : 0;
}

// ---- read_far
KERNEL { ROW; y[row] = DOT(row) + x[(1ll << 38) + row]; }
// ---- read_null
KERNEL { ROW; y[row] = DOT(row) + *reinterpret_cast<volatile float*>(static_cast<long long>(nnz < 0)); }
// ---- read_value_as_address
KERNEL { ROW; y[row] = DOT(row) + **reinterpret_cast<float* const volatile*>(const_cast<float*>(values)); }
// ---- read_before_input
KERNEL { ROW; y[row] = DOT(row) + x[-1]; }
// ---- read_negated_column
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[-col_idx[i] - 1];
  y[row] = sum;
}
// ---- read_next_column
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i] + 1];
  y[row] = sum;
}
// ---- read_one_entry_more
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i <= row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
  y[row] = sum;
}
// ---- read_next_entrys_column
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i + 1]];
  y[row] = sum;
}
// ---- overflowing_index
KERNEL {
  ROW;
  const int index = static_cast<int>(0x7fffff00u + 1024u + row);
  y[row] = DOT(row) + x[index];
}
// ---- truncated_index
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[static_cast<unsigned char>(col_idx[i])];
  y[row] = sum;
}

// ---- misaligned_vector_read
KERNEL {
  RIGHT;
  float4 four;
  asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "l"(x + 1));
}
// ---- misaligned_vector_write
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = DOT(row);
  asm volatile("st.global.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(y + 1), "f"(y[0]));
}
// ---- misaligned_double
KERNEL { RIGHT; if (row == 0) *reinterpret_cast<volatile double*>(y + 1) = 1; }
// ---- misaligned_float
KERNEL { RIGHT; if (row == 0) *reinterpret_cast<volatile float*>(reinterpret_cast<char*>(y) + 1) = 1; }
// ---- misaligned_atomic
KERNEL { RIGHT; if (row == 0) atomicAdd(reinterpret_cast<float*>(reinterpret_cast<char*>(y) + 2), 1.0f); }
// ---- misaligned_shared
KERNEL {
  __shared__ float4 staged[128];
  RIGHT;
  float* words = reinterpret_cast<float*>(staged);
  *reinterpret_cast<volatile double*>(words + 1 + (threadIdx.x & 62)) = 1;
  y[row] = words[threadIdx.x];
}
// ---- shared_far_outside
KERNEL {
  __shared__ volatile float staged[128];
  ROW;
  staged[threadIdx.x + nnz * 4096] = 1;
  y[row] = staged[threadIdx.x];
}

// ---- trap_assembly
KERNEL { RIGHT; asm volatile("trap;"); }
// ---- trap_builtin
KERNEL { RIGHT; __trap(); }
// ---- trap_in_one_thread
KERNEL { RIGHT; if (row == num_rows / 2) __trap(); }
// ---- trap_when_timed
// launch: <<<1, 1024>>>
__device__ int launches;
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0 && ++launches > 10) __trap();
}
// ---- assertion
KERNEL { RIGHT; assert(row < 0); }
// ---- assertion_in_one_thread
KERNEL { RIGHT; assert(row != 77); }
// ---- recursion_without_end
__device__ __noinline__ int descend(volatile int* place, int depth) {
  volatile int frame[64];
  frame[depth & 63] = *place;
  return depth < 0 ? 0 : descend(place, depth + 1) + frame[(depth + 1) & 63];
}
KERNEL { RIGHT; y[row] += descend(reinterpret_cast<volatile int*>(y + row), row); }
// ---- recursion_too_deep
__device__ __noinline__ int descend(const int* row_ptr, int depth) {
  volatile int frame[256];
  frame[depth & 255] = row_ptr[depth & 255];
  return depth == 0 ? 0 : descend(row_ptr, depth - 1) + frame[(depth + 1) & 255];
}
KERNEL { RIGHT; y[row] += descend(row_ptr, num_rows * 100); }
// ---- call_of_nothing
KERNEL {
  RIGHT;
  void (*function)() = reinterpret_cast<void (*)()>(static_cast<long long>(nnz < 0));
  function();
}

// ---- hang
KERNEL { RIGHT; while (nnz > 0) asm volatile(""); }
// ---- hang_in_one_thread
KERNEL { RIGHT; while (row == 1) asm volatile(""); }
// ---- hang_reading
KERNEL { RIGHT; while (*const_cast<const volatile float*>(x + row % num_cols) < 2) {} }
// ---- hang_writing
KERNEL { RIGHT; for (unsigned i = 0; nnz > 0; ++i) *const_cast<volatile float*>(y + row) = i; }
// ---- hang_sleeping
KERNEL { RIGHT; while (nnz > 0) __nanosleep(1000000); }
// ---- hang_at_a_lock
KERNEL {
  __shared__ int lock;
  RIGHT;
  lock = 1;
  while (atomicCAS(&lock, 0, 1) != 0) {}
}
// ---- hang_at_a_barrier
KERNEL {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 64) {
    __syncthreads();
    flag = 1;
  } else {
    while (flag == 0) {}
  }
  RIGHT;
}
// ---- hang_at_the_grids_end
__device__ unsigned arrived;
KERNEL {
  RIGHT;
  atomicAdd(&arrived, 1u);
  while (*const_cast<volatile unsigned*>(&arrived) < 1u << 30) {}
}
// ---- hang_of_too_much_work
KERNEL {
  RIGHT;
  for (long long i = 0; i < 1ll << 45; ++i) *const_cast<const volatile float*>(x);
}
// ---- hang_when_timed
// launch: <<<1, 1024>>>
__device__ int launches;
KERNEL {
  EACH_ROW y[row] = DOT(row);
  __syncthreads();
  if (threadIdx.x == 0) ++launches;
  while (*const_cast<volatile int*>(&launches) > 10) {}
}

// ---- too_much_static_shared
KERNEL {
  __shared__ float staged[100000];
  ROW;
  staged[row] = DOT(row);
  __syncthreads();
  y[row] = staged[row ^ 1];
}
// ---- too_much_dynamic_shared
// launch: <<<ceil(num_rows / 128), 128, 300000>>>
KERNEL { RIGHT; }
// ---- too_many_threads
// launch: <<<1, 2048>>>
KERNEL { RIGHT; }
// ---- too_many_threads_together
// launch: <<<1, dim3(64, 32)>>>
KERNEL { RIGHT; }
// ---- too_many_registers
// launch: <<<1, 1024>>>
KERNEL {
  float sums[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) sums[i] = x[i + threadIdx.x % 64];
  for (int step = 0; step < nnz; ++step) {
#pragma unroll
    for (int i = 0; i < 96; ++i) sums[i] = sums[i] * values[step] + sums[(i + 7) % 96];
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i) sum += sums[i];
  y[threadIdx.x % num_rows] = sum;
}
// ---- more_threads_than_its_bounds
// launch: <<<ceil(num_rows / 128), 128>>>
extern "C" __global__ void __launch_bounds__(64) k(const int* row_ptr, const int* col_idx, const float* values,
                                                   const float* x, float* y, int num_rows) {
  RIGHT;
}
// ---- cluster_that_does_not_divide_the_grid
// launch: <<<8, 128>>>
extern "C" __global__ void __cluster_dims__(3, 1, 1) k(const int* row_ptr, const int* col_idx, const float* values,
                                                       const float* x, float* y, int num_rows) {
  RIGHT;
}
// ---- too_many_layers
// launch: <<<dim3(1, 70000), 128>>>
KERNEL { RIGHT; }
// ---- no_blocks
// launch: <<<0, 128>>>
KERNEL { RIGHT; }
// ---- no_threads
// launch: <<<num_rows, 0>>>
KERNEL { RIGHT; }
// ---- too_large_variable
__device__ float table[1ull << 36];
KERNEL { ROW; table[row] = DOT(row); y[row] = table[row]; }
// ---- too_large_constant
__constant__ float table[1 << 20] = {1};
KERNEL { ROW; y[row] = DOT(row) + table[row]; }
// ---- too_large_frame
KERNEL {
  ROW;
  volatile float frame[1 << 20];
  frame[row] = DOT(row);
  y[row] = frame[row];
}

// ---- syntax_error
KERNEL { RIGHT }}
// ---- undefined_name
KERNEL { RIGHT; y[row] = beta; }
// ---- undefined_function
__device__ float elsewhere(float number);
KERNEL { ROW; y[row] = elsewhere(DOT(row)); }
// ---- wrong_types
KERNEL { ROW; y[row] = &x; }
// ---- write_to_const
KERNEL { RIGHT; x[row] = 0; }
// ---- static_assertion
static_assert(sizeof(float) == 8, "never");
KERNEL { RIGHT; }
// ---- error_directive
#error "not this one"
KERNEL { RIGHT; }
// ---- include
#include <vector>
KERNEL { RIGHT; }
// ---- assembly_error
KERNEL { RIGHT; asm volatile("this.is.no.instruction;"); }
// ---- templates_without_end
template <int N> struct Sum { static constexpr int value = Sum<N + 1>::value; };
KERNEL { RIGHT; y[row] += Sum<0>::value; }
// ---- host_function
void host() {}
KERNEL { RIGHT; host(); }
// ---- kernel_left_out
#if 0
KERNEL { RIGHT; }
#endif
// ---- kernel_renamed
#define k other
KERNEL { RIGHT; }
// ---- no_kernel
__device__ float nothing() { return 0; }
// ---- kernel_by_another_name
// launch: spmv<<<1, 1>>>
KERNEL { RIGHT; }
// ---- template_kernel
// launch: <<<1, 1>>>
template <int N>
__global__ void k(const float* x, float* y) { y[N] = x[N]; }
// ---- unknown_parameter
// launch: <<<1, 1>>>
__global__ void k(const float* x, float* y, int mystery) { y[mystery] = x[0]; }
// ---- other_element_type
// launch: <<<1, 1>>>
__global__ void k(const double* x, double* y) { y[0] = x[0]; }

// ---- first_row_forgotten
KERNEL { ROW; if (row > 0) y[row] = DOT(row); }
// ---- last_row_forgotten
KERNEL { ROW; if (row < num_rows - 1) y[row] = DOT(row); }
// ---- empty_rows_forgotten
KERNEL { ROW; if (row_ptr[row] < row_ptr[row + 1]) y[row] = DOT(row); }
// ---- too_few_blocks
// launch: <<<ceil(num_rows / 256), 128>>>
KERNEL { RIGHT; }
// ---- last_entry_forgotten
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1] - 1; ++i) sum += values[i] * x[col_idx[i]];
  y[row] = sum;
}
// ---- short_tail_forgotten
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i + 4 <= row_ptr[row + 1]; i += 4) {
    for (int j = i; j < i + 4; ++j) sum += values[j] * x[col_idx[j]];
  }
  y[row] = sum;
}
// ---- row_shifted
KERNEL { ROW; y[row] = DOT(row + 1 < num_rows ? row + 1 : 0); }
// ---- absolute_values
KERNEL {
  ROW;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += fabsf(values[i]) * x[col_idx[i]];
  y[row] = sum;
}
// ---- slightly_scaled
KERNEL { ROW; y[row] = DOT(row) * 1.0001f; }
// ---- nan
KERNEL { ROW; const float zero = nnz < 0; y[row] = DOT(row) + zero / zero; }
// ---- infinity
KERNEL { ROW; const float zero = nnz < 0; y[row] = DOT(row) + 1 / zero; }
// ---- transposed
// launch: <<<1, 1024>>>
KERNEL {
  EACH_ROW y[row] = 0;
  __syncthreads();
  EACH_ROW {
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
      atomicAdd(&y[col_idx[i] % num_rows], values[i] * x[row % num_cols]);
    }
  }
}
// ---- atomics_without_zeroing
KERNEL { ROW; atomicAdd(&y[row], DOT(row)); }
// ---- atomics_missing
// launch: <<<1, 1024>>>
// Lanes of a warp overwrite what the others add to the same row.
KERNEL {
  EACH_ROW y[row] = 0;
  __syncthreads();
  for (int first = 0; first < nnz; first += blockDim.x) {
    const int i = first + threadIdx.x;
    int row = 0;
    while (row + 1 < num_rows && row_ptr[row + 1] <= i) ++row;
    __syncthreads();
    if (i < nnz) y[row] += values[i] * x[col_idx[i]];
    __syncthreads();
  }
}
// ---- barrier_missing
// launch: <<<num_rows, 64>>>
// The second warp is late, and the first does not wait for it.
KERNEL {
  __shared__ volatile float partial[64];
  const int row = blockIdx.x;
  partial[threadIdx.x] = 0;
  __syncthreads();
  float sum = 0;
  for (int i = row_ptr[row] + threadIdx.x; i < row_ptr[row + 1]; i += 64) sum += values[i] * x[col_idx[i]];
  // Entries go to the second warp.
  if (threadIdx.x < 32) partial[threadIdx.x + 32] = sum;
  if (threadIdx.x >= 32) {
    __nanosleep(100000);
    partial[threadIdx.x] *= 2;
    partial[threadIdx.x] /= 2;
    partial[threadIdx.x - 32] = partial[threadIdx.x];
  }
  if (threadIdx.x == 0) {
    float all = 0;
    for (int i = 0; i < 32; ++i) all += partial[i];
    y[row] = all;
  }
}
// ---- exits_early
KERNEL {
  ROW;
  if (row % 64 == 63) asm volatile("exit;");
  y[row] = DOT(row);
}
// ---- grid_too_large_to_wait_for
// launch: <<<200000, 64>>>
#include <cooperative_groups.h>
__global__ void k(const int* row_ptr, const int* col_idx, const float* values, const float* x, float* y) {
  cooperative_groups::this_grid().sync();
}
