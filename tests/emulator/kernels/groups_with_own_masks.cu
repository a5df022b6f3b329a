// Rows without lanes to spare: each group of four lanes leaves its loop when it is done, and shuffles under its own mask.
// launch: <<<2, 128>>>
// matrix: rows=61 columns=90 mean=7
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 61
// argument: rows i32 value 61
// expect: y spmv x
extern "C" __global__ void groups_with_own_masks(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 4, lane = threadIdx.x % 4;
  if (row >= rows) return;
  const unsigned mask = 0xfu << (threadIdx.x % 32 / 4 * 4);
  float total = 0;
  for (int first = row_ptr[row]; first < row_ptr[row + 1]; first += 4) {
    const int i = first + lane;
    float product = i < row_ptr[row + 1] ? values[i] * x[columns[i]] : 0;
    product += __shfl_xor_sync(mask, product, 1);
    product += __shfl_xor_sync(mask, product, 2);
    total += product;
  }
  if (lane == 0) y[row] = total;
}
