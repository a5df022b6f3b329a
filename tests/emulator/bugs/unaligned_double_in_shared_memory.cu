// Doubles lie behind an odd number of floats in shared memory.
// launch: <<<1, 32, 520>>>
// argument: x read-only f64 32 random
// argument: y output f64 32
// argument: floats i32 value 33
extern "C" __global__ void unaligned_double_in_shared_memory(const double* x, double* y, int floats) {
  extern __shared__ double2 memory[];
  float* head = reinterpret_cast<float*>(memory);
  double* tail = reinterpret_cast<double*>(head + floats);
  const int t = threadIdx.x;
  head[t] = static_cast<float>(x[t]);
  tail[t] = x[t];  // BUG: misaligned
  __syncthreads();
  y[t] = head[31 - t] + tail[31 - t];  // BUG: misaligned; ALSO: uninitialised
}
