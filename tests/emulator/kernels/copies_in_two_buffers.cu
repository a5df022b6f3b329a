// Tiles come by asynchronous copies into two buffers in turn.
// launch: <<<1, 64>>>
// argument: x read-only f32 640 random
// argument: y output f32 1
// argument: tiles i32 value 10
// expect: y sum x
__device__ __forceinline__ void copy(float* to, const float* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}
extern "C" __global__ void copies_in_two_buffers(const float* x, float* y, int tiles) {
  __shared__ float buffer[2][64];
  __shared__ float sums[64];
  const int t = threadIdx.x;
  copy(&buffer[0][t], x + t);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      copy(&buffer[(tile + 1) & 1][t], x + (tile + 1) * 64 + t);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    sum += buffer[tile & 1][63 - t];
    __syncthreads();
  }
  sums[t] = sum;
  __syncthreads();
  if (t == 0) {
    float total = 0;
    for (int i = 0; i < 64; ++i) total += sums[i];
    y[0] = total;
  }
}
