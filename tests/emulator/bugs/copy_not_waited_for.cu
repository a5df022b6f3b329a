// An asynchronous copy into shared memory is committed, but nobody waits for it.
// launch: <<<2, 64>>>
// argument: x read-only f32 128 random
// argument: y output f32 128
extern "C" __global__ void copy_not_waited_for(const float* x, float* y) {
  __shared__ float tile[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&tile[t]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(x + i) : "memory");  // BUG: race, uninitialised
  asm volatile("cp.async.commit_group;" ::: "memory");
  __syncthreads();
  y[i] = tile[63 - t];  // BUG: race, uninitialised
}
