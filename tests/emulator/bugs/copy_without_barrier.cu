// Each thread waits for its own asynchronous copies only, and then reads those of other warps.
// launch: <<<2, 64>>>
// argument: x read-only f32 128 random
// argument: y output f32 128
extern "C" __global__ void copy_without_barrier(const float* x, float* y) {
  __shared__ float tile[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&tile[t]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(x + i) : "memory");  // BUG: race
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");  // ALSO: race
  y[i] = tile[63 - t];                                  // BUG: race; ALSO: uninitialised
}
