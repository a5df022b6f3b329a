// A scan over blocks, each of which waits for the sum of the one before it.
// launch: <<<8, 64>>>
// argument: x read-only i32 512 random 10
// argument: y output i32 512
// argument: ticket writable i32 1 zero
// argument: sums output i32 8
// argument: flags writable i32 8 zero
// expect: y prefix-sum x
extern "C" __global__ void look_back(const int* x, int* y, int* ticket, int* sums, int* flags) {
  __shared__ int block, before, warps[2];
  if (threadIdx.x == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  const int i = block * 64 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = x[i];
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    before = 0;
    if (block > 0) {
      while (*(volatile int*)&flags[block - 1] == 0) {
      }
      __threadfence();
      before = sums[block - 1];
    }
    sums[block] = before + warps[0] + warps[1];
    __threadfence();
    *(volatile int*)&flags[block] = 1;
  }
  __syncthreads();
  y[i] = sum + before + (warp == 1 ? warps[0] : 0);
}
