// Lanes with entries of the same row store their sums to the same place.
// launch: <<<1, 32>>>
// argument: rows read-only i32 32 random 8
// argument: values read-only f32 32 random
// argument: y writable f32 8 zero
extern "C" __global__ void last_writer_wins(const int* rows, const float* values, float* y) {
  y[rows[threadIdx.x]] = values[threadIdx.x];  // BUG: race
}
