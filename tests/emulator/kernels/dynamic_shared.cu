// Products of a block's rows go to shared memory whose size the launch says, and each row is added up there.
// launch: <<<7, 16, 1152>>>
// matrix: rows=100 columns=90 mean=9
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void dynamic_shared(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  extern __shared__ float products[];
  const int first_row = blockIdx.x * 16, last_row = min(first_row + 16, rows);
  const int begin = row_ptr[first_row], end = row_ptr[last_row];
  for (int i = begin + threadIdx.x; i < end; i += blockDim.x) products[i - begin] = values[i] * x[columns[i]];
  __syncthreads();
  const int row = first_row + threadIdx.x;
  if (row >= last_row) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += products[i - begin];
  y[row] = sum;
}
