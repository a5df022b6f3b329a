// A thread that finds nothing to do returns without giving back the lock that it took.
// launch: <<<1, 32>>>
// argument: x read-only i32 32 random 4
// argument: lock writable i32 1 zero
// argument: y writable i32 1 zero
extern "C" __global__ void lock_not_released(const int* x, int* lock, int* y) {
  while (atomicCAS(lock, 0, 1) != 0) {  // BUG: endless, over-budget, deadlock
  }
  __threadfence();
  const int value = x[threadIdx.x];
  if (value == 0) return;
  *(volatile int*)y = *(volatile int*)y + value;
  __threadfence();
  atomicExch(lock, 0);
}
