// The values are scaled in place, although the caller still needs them.
// launch: <<<2, 64>>>
// argument: values read-only f32 128 random
// argument: factor f32 value 0.5
extern "C" __global__ void scales_its_input(float* values, float factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;  // BUG: write-to-read-only
}
