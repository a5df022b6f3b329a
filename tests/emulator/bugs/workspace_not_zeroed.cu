// Partial results are added up in a workspace that nobody has set to zero.
// launch: <<<4, 64>>>
// argument: rows read-only i32 256 random 64
// argument: values read-only f32 256 random
// argument: workspace output f32 64
extern "C" __global__ void workspace_not_zeroed(const int* rows, const float* values, float* workspace) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&workspace[rows[i]], values[i]);  // BUG: uninitialised
}
