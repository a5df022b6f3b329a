// Counters of a block are counted up before all of them have been set to zero.
// launch: <<<1, 128>>>
// argument: bins read-only i32 128 random 64
// argument: counts output i32 64
extern "C" __global__ void missing_barrier_after_reset(const int* bins, int* counts) {
  __shared__ int local[64];
  const int t = threadIdx.x;
  if (t < 64) local[t] = 0;      // BUG: race
  atomicAdd(&local[bins[t]], 1);  // BUG: race; ALSO: uninitialised
  __syncthreads();
  if (t < 64) counts[t] = local[t];  // ALSO: uninitialised
}
