// The last slice of a sliced matrix has fewer rows than lanes, and all of its lanes write.
// launch: <<<4, 32>>>
// matrix: rows=100 columns=90 mean=5
// argument: slice_ptr read-only i32 sell-offsets 32
// argument: columns read-only i32 sell-columns 32
// argument: values read-only f32 sell-values 32
// argument: x read-only f32 90 random
// argument: y output f32 100
extern "C" __global__ void padded_rows_written(const int* slice_ptr, const int* columns, const float* values, const float* x, float* y) {
  float sum = 0;
  for (int i = slice_ptr[blockIdx.x] + threadIdx.x; i < slice_ptr[blockIdx.x + 1]; i += 32) {
    sum += values[i] * x[columns[i]];
  }
  y[blockIdx.x * 32 + threadIdx.x] = sum;  // BUG: out-of-bounds
}
