// Functions that are not inlined, one of them recursive.
// launch: grid=2 block=64 shared=0
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
__device__ __noinline__ float product(Entry entry, const float* x) { return entry.value * x[entry.column]; }
__device__ __noinline__ float dot(const int* columns, const float* values, const float* x, int begin, int end) {
  if (end - begin > 2) {
    const int middle = (begin + end) / 2;
    return dot(columns, values, x, begin, middle) + dot(columns, values, x, middle, end);
  }
  float sum = 0;
  for (int i = begin; i < end; ++i) sum += product(entry(columns, values, i), x);
  return sum;
}
extern "C" __global__ void calls(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) y[row] = dot(columns, values, x, row_ptr[row], row_ptr[row + 1]);
}
