// The launch asks for shared memory for floats, and the kernel keeps doubles in it.
// launch: <<<1, 64, 256>>>
// argument: x read-only f64 64 random
// argument: y output f64 64
extern "C" __global__ void past_dynamic_shared_memory(const double* x, double* y) {
  extern __shared__ double staged[];
  const int t = threadIdx.x;
  staged[t] = x[t];  // BUG: out-of-bounds
  __syncthreads();
  y[t] = staged[63 - t];  // BUG: out-of-bounds
}
