// Two threads of different blocks share a row. A lock for each row lets one store and the other add.
// launch: spmv<<<ceil(num_rows / 32), dim3(32, 2)>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int locks[4096], arrivals[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int shift = threadIdx.y * (gridDim.x / 2) * 32;
  const int row = (blockIdx.x * 32 + threadIdx.x + shift) % (gridDim.x * 32);
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + threadIdx.y; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  bool done = false;
  while (!done) {
    if (atomicCAS(&locks[row], 0, 1) == 0) {
      __threadfence();
      if (arrivals[row] == 0) {
        y[row] = sum;
        arrivals[row] = 1;
      } else {
        y[row] += sum;
        arrivals[row] = 0;
      }
      __threadfence();
      atomicExch(&locks[row], 0);
      done = true;
    }
  }
}
