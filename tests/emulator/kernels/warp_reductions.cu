// Integer sums by one instruction for a warp.
// launch: <<<3, 64>>>
// argument: x read-only i32 1000 random 100
// argument: y writable i32 1 zero
// argument: size i32 value 1000
// expect: y sum x
extern "C" __global__ void warp_reductions(const int* x, int* y, int size) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) sum += x[i];
  const int total = static_cast<int>(__reduce_add_sync(0xffffffffu, static_cast<unsigned>(sum)));
  if (threadIdx.x % 32 == 0) atomicAdd(y, total);
}
