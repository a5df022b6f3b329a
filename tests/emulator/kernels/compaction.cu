// Positive numbers are kept, in their order, by ballots and counts.
// launch: <<<1, 32>>>
// argument: x read-only f32 500 random
// argument: y writable f32 500 zero
// argument: size i32 value 500
// expect: y positive x
extern "C" __global__ void compaction(const float* x, float* y, int size) {
  const int lane = threadIdx.x;
  int kept = 0;
  for (int first = 0; first < size; first += 32) {
    const float value = first + lane < size ? x[first + lane] : -1;
    const unsigned positive = __ballot_sync(0xffffffffu, value > 0);
    unsigned before;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    if (value > 0) y[kept + __popc(positive & before)] = value;
    kept += __popc(positive);
  }
}
