// Rows and entries are shared evenly among threads along the merge path; carries are added by atomics.
// launch: <<<2, 32>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y writable f32 100 zero
// argument: rows i32 value 100
// argument: entries i32 csr-entries
// expect: y spmv x
extern "C" __global__ void merge_path(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows, int entries) {
  const int threads = gridDim.x * blockDim.x, share = (rows + entries + threads - 1) / threads;
  int row = 0, i = 0;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int start = min(thread * share, rows + entries), stop = min(start + share, rows + entries);
  int low = max(start - entries, 0), high = min(start, rows);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (row_ptr[middle + 1] <= start - middle - 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  row = low;
  i = start - low;
  float sum = 0;
  for (int step = start; step < stop; ++step) {
    if (row < rows && row_ptr[row + 1] <= i) {
      atomicAdd(&y[row++], sum);
      sum = 0;
    } else {
      sum += values[i] * x[columns[i]];
      ++i;
    }
  }
  if (row < rows && sum != 0) atomicAdd(&y[row], sum);
}
