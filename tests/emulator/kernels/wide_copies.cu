// Asynchronous copies of 16 bytes past the first-level cache, the last of which fills up with zeros.
// launch: <<<1, 32>>>
// argument: x read-only f32 250 random
// argument: y output f32 1
// argument: size i32 value 250
// expect: y sum x
extern "C" __global__ void wide_copies(const float* x, float* y, int size) {
  __shared__ float4 tile[32];
  const int lane = threadIdx.x;
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&tile[lane]));
  float sum = 0;
  for (int first = 0; first < size; first += 128) {
    const int left = min(max(size - first - lane * 4, 0), 4) * 4;
    const float* from = left > 0 ? x + first + lane * 4 : x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(left) : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    const float4 four = tile[31 - lane];
    sum += four.x + four.y + four.z + four.w;
    __syncwarp();
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) *y = sum;
}
