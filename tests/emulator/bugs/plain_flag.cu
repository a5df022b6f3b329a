// The flag that another block polls by atomics is set with an ordinary store.
// launch: <<<2, 32>>>
// argument: x read-only f32 32 random
// argument: staged output f32 32
// argument: flag writable i32 1 zero
// argument: y output f32 32
extern "C" __global__ void plain_flag(const float* x, float* staged, int* flag, float* y) {
  const int lane = threadIdx.x;
  if (blockIdx.x == 0) {
    staged[lane] = x[lane] * x[lane];  // ALSO: race
    __threadfence();
    __syncwarp();
    if (lane == 0) *flag = 1;  // BUG: race
  } else {
    while (atomicAdd(flag, 0) == 0) {  // BUG: race
    }
    __threadfence();
    y[lane] = staged[31 - lane];  // ALSO: race
  }
}
