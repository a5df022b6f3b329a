// Entries of the same row are found among all lanes, although the last lanes come to a barrier instead.
// launch: <<<1, 32>>>
// argument: rows read-only i32 27 random 5
// argument: values read-only f32 27 random
// argument: y writable f32 5 zero
// argument: entries i32 value 27
extern "C" __global__ void match_after_guard(const int* rows, const float* values, float* y, int entries) {
  const int i = threadIdx.x;
  if (i < entries) {
    const unsigned peers = __match_any_sync(0xffffffffu, rows[i]);  // BUG: missing-lanes
    float sum = 0;
    for (unsigned left = peers; left != 0; left &= left - 1) sum += values[__ffs(left) - 1];
    if (__ffs(peers) - 1 == i) y[rows[i]] = sum;
  }
  __syncwarp();  // ALSO: missing-lanes
}
