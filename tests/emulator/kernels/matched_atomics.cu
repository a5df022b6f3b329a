// Lanes with entries of the same row find each other, and one of them adds for all.
// launch: <<<5, 128>>>
// matrix: rows=100 columns=90 mean=5
// argument: rows read-only i32 coo-rows
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y writable f32 100 zero
// argument: entries i32 csr-entries
// expect: y spmv x
extern "C" __global__ void matched_atomics(const int* rows, const int* columns, const float* values, const float* x, float* y, int entries) {
  const int threads = gridDim.x * blockDim.x, lane = threadIdx.x % 32;
  for (int first = blockIdx.x * blockDim.x + threadIdx.x - lane; first < entries; first += threads) {
    const int i = first + lane;
    const unsigned active = __ballot_sync(0xffffffffu, i < entries);
    if (i < entries) {
      const float product = values[i] * x[columns[i]];
      const unsigned peers = __match_any_sync(active, rows[i]);
      float sum = 0;
      for (unsigned left = active; left != 0; left &= left - 1) {
        const float other = __shfl_sync(active, product, __ffs(left) - 1);
        if (peers & left & -left) sum += other;
      }
      if (__ffs(peers) - 1 == lane) atomicAdd(&y[rows[i]], sum);
    }
  }
}
