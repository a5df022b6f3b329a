// Warps own ranges of entries, and add their first and last rows, which they share, without atomics.
// launch: <<<1, 64>>>
// matrix: rows=6 columns=100 mean=12
// argument: rows read-only i32 coo-rows
// argument: values read-only f32 csr-values
// argument: y writable f32 6 zero
// argument: entries i32 csr-entries
extern "C" __global__ void boundaries_race(const int* rows, const float* values, float* y, int entries) {
  if (threadIdx.x % 32 != 0) return;
  const int middle = entries / 2;
  const int begin = threadIdx.x == 0 ? 0 : middle, end = threadIdx.x == 0 ? middle : entries;
  float sum = 0;
  for (int i = begin; i < end; ++i) {
    sum += values[i];
    if (i + 1 == end || rows[i + 1] != rows[i]) {
      y[rows[i]] += sum;  // BUG: race
      sum = 0;
    }
  }
}
