// Entries are sorted into rows by counting up the row offsets themselves instead of a copy.
// launch: <<<1, 96>>>
// matrix: rows=12 columns=100 mean=8
// argument: rows read-only i32 coo-rows
// argument: row_ptr read-only i32 csr-offsets
// argument: order output i32 csr-entries
// argument: entries i32 csr-entries
extern "C" __global__ void offsets_as_cursors(const int* rows, int* row_ptr, int* order, int entries) {
  const int i = threadIdx.x;
  if (i < entries) {
    const int place = atomicAdd(&row_ptr[rows[i]], 1);  // BUG: write-to-read-only
    order[place] = i;  // ALSO: race, out-of-bounds
  }
}
