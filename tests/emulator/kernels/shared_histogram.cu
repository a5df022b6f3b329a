// Counts in shared memory by atomics, then added to the result.
// launch: <<<3, 64>>>
// argument: x read-only i32 1000 random 20
// argument: y writable i32 20 zero
// argument: size i32 value 1000
// expect: y histogram x
extern "C" __global__ void shared_histogram(const int* x, int* y, int size) {
  __shared__ int counts[20];
  if (threadIdx.x < 20) counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) atomicAdd(&counts[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 20) atomicAdd(&y[threadIdx.x], counts[threadIdx.x]);
}
