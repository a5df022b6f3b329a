// One thread takes the ticket while the other threads of its block still write their partial results.
// launch: <<<4, 64>>>
// argument: x read-only f32 256 random
// argument: partial output f32 256
// argument: ticket writable u32 1 zero
// argument: y output f32 64
extern "C" __global__ void missing_barrier_before_ticket(const float* x, float* partial, unsigned* ticket, float* y) {
  __shared__ unsigned arrived;
  partial[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x] * 3;  // BUG: race
  __threadfence();
  if (threadIdx.x == 0) arrived = atomicAdd(ticket, 1u);
  __syncthreads();
  if (arrived != gridDim.x - 1) return;
  __threadfence();
  float sum = 0;
  for (int block = 0; block < gridDim.x; ++block) {
    sum += partial[block * 64 + threadIdx.x];  // BUG: race; ALSO: uninitialised
  }
  y[threadIdx.x] = sum;  // ALSO: uninitialised
}
