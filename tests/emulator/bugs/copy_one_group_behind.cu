// One group of copies may be left open in every step, also in the last, where it is the one that is needed.
// launch: <<<1, 64>>>
// argument: x read-only f32 192 random
// argument: y output f32 64
// argument: tiles i32 value 3
__device__ void copy(float* to, const float* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");  // BUG: race, uninitialised
  asm volatile("cp.async.commit_group;" ::: "memory");
}
extern "C" __global__ void copy_one_group_behind(const float* x, float* y, int tiles) {
  __shared__ float buffer[2][64];
  const int t = threadIdx.x;
  copy(&buffer[0][t], x + t);  // BUG: race, uninitialised
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      copy(&buffer[(tile + 1) & 1][t], x + (tile + 1) * 64 + t);  // BUG: race, uninitialised
    }
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    sum += buffer[tile & 1][63 - t];  // BUG: race, uninitialised
    __syncthreads();
  }
  y[t] = sum;  // BUG: uninitialised
}
