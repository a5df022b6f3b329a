// Functions that are not inlined, with a structure as result and pointers as arguments.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
struct Entry {
  int column;
  float value;
};
__device__ __noinline__ Entry entry(const int* columns, const float* values, int i) { return {columns[i], values[i]}; }
__device__ __noinline__ void add_product(const Entry& entry, const float* x, float* sum) {
  *sum += entry.value * x[entry.column];
}
extern "C" __global__ void calls(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) add_product(entry(columns, values, i), x, &sum);
  y[row] = sum;
}
