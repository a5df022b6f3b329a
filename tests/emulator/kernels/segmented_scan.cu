// A warp's entries are added up by row with shuffles, and the last of each row writes.
// launch: <<<1, 32>>>
// matrix: rows=20 columns=90 mean=6
// argument: rows read-only i32 coo-rows
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y writable f32 20 zero
// argument: entries i32 csr-entries
// expect: y spmv x
extern "C" __global__ void segmented_scan(const int* rows, const int* columns, const float* values, const float* x, float* y, int entries) {
  const int lane = threadIdx.x;
  for (int first = 0; first < entries; first += 32) {
    const int i = first + lane;
    const int row = i < entries ? rows[i] : -1;
    float sum = i < entries ? values[i] * x[columns[i]] : 0;
    for (int step = 1; step < 32; step *= 2) {
      const float other = __shfl_up_sync(0xffffffffu, sum, step);
      const int other_row = __shfl_up_sync(0xffffffffu, row, step);
      if (lane >= step && other_row == row) sum += other;
    }
    const int next = __shfl_down_sync(0xffffffffu, row, 1);
    if (row >= 0 && (lane == 31 || next != row)) y[row] += sum;
    __syncwarp();
  }
}
