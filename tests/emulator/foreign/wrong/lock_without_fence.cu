// A lock for each row guards plain additions, but nothing orders them with the lock.
// launch: spmv<<<ceil(num_rows / 32) * 2, 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int locks[4096], arrivals[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x / 2 * 32 + threadIdx.x, side = blockIdx.x % 2;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + side; i < rp[row + 1]; i += 2) sum += va[i] * x[ci[i]];
  bool done = false;
  while (!done) {
    if (atomicCAS(&locks[row], 0, 1) == 0) {
      if (arrivals[row] == 0) y[row] = sum; else y[row] += sum;  // BUG
      arrivals[row] ^= 1;  // BUG
      atomicExch(&locks[row], 0);
      done = true;
    }
  }
}
