// A binary search for the row of an entry keeps its lower end where it is.
// launch: <<<1, 64>>>
// matrix: rows=32 columns=100 mean=6
// argument: row_ptr read-only i32 csr-offsets
// argument: y output i32 64
// argument: rows i32 value 32
extern "C" __global__ void search_never_ends(const int* row_ptr, int* y, int rows) {
  const int entry = threadIdx.x;
  int low = 0, high = rows;
  while (low < high) {                   // BUG: endless, over-budget
    const int middle = (low + high) / 2;  // BUG: endless, over-budget
    if (row_ptr[middle] <= entry) {      // BUG: endless, over-budget
      low = middle;                      // BUG: endless, over-budget
    } else {
      high = middle;  // BUG: endless, over-budget
    }
  }
  y[entry] = low;
}
