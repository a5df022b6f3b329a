// The end of the next row is fetched ahead, also for the last row, which has no next one.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: lengths output i32 100
// argument: rows i32 value 100
extern "C" __global__ void reads_past_offsets(const int* row_ptr, int* lengths, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int begin = row_ptr[row], end = row_ptr[row + 1];
  const int next_end = row_ptr[row + 2];  // BUG: out-of-bounds
  lengths[row] = max(end - begin, next_end - end);
}
