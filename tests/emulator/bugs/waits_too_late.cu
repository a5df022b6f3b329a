// A kernel that begins before the one before it has ended reads what that one writes before it waits.
// launch: <<<2, 64>>>
// argument: factors read-only f32 128 random
// argument: x input f32 128 random
// argument: y writable f32 128 random
extern "C" __global__ void waits_too_late(const float* factors, const float* x, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float early = factors[i] * x[i];  // BUG: before-wait
  if (threadIdx.x < 32) y[i] = 0;  // BUG: before-wait
  asm volatile("griddepcontrol.wait;" ::: "memory");
  y[i] = early + x[i];
}
