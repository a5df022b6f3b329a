// Only two of four warps reach a barrier for the whole block, because it stands in a branch.
// launch: <<<1, 128>>>
// argument: x read-only f32 128 random
// argument: y output f32 128
extern "C" __global__ void barrier_in_branch(const float* x, float* y) {
  __shared__ float tile[128];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncthreads();
  float sum = tile[127 - t];
  if (t < 64) {
    sum += tile[t + 64];
    __syncthreads();  // BUG: divergent-barrier, deadlock
  }
  y[t] = sum;
}
