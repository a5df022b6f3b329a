// A scan in shared memory reads the neighbour and writes its own element without a barrier between them.
// launch: <<<1, 128>>>
// argument: x read-only i32 128 random 10
// argument: y output i32 128
extern "C" __global__ void scan_in_place(const int* x, int* y) {
  __shared__ int sums[128];
  const int t = threadIdx.x;
  sums[t] = x[t];
  for (int step = 1; step < 128; step *= 2) {
    __syncthreads();
    const int other = t >= step ? sums[t - step] : 0;  // BUG: race
    sums[t] += other;                                  // BUG: race
  }
  y[t] = sums[t];
}
