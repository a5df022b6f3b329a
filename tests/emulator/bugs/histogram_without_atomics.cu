// Threads count rows by length in shared memory without atomics.
// launch: <<<1, 128>>>
// matrix: rows=128 columns=100 mean=4
// argument: row_ptr read-only i32 csr-offsets
// argument: counts output i32 32
extern "C" __global__ void histogram_without_atomics(const int* row_ptr, int* counts) {
  __shared__ int local[32];
  const int t = threadIdx.x;
  if (t < 32) local[t] = 0;
  __syncthreads();
  local[min(row_ptr[t + 1] - row_ptr[t], 31)] += 1;  // BUG: race
  __syncthreads();
  if (t < 32) counts[t] = local[t];
}
