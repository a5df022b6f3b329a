// A warp brings products to a ring of two stages, another adds them up: named barriers say full and empty.
// launch: spmv<<<ceil(num_rows / 32), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ __forceinline__ void meet(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
__device__ __forceinline__ void arrive(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float ring[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int last = min(n, (int)(blockIdx.x + 1) * 32);
  int stage = 0;
  if (warp == 1) arrive(3), arrive(4);
  for (int row = blockIdx.x * 32; row < last; ++row) {
    if (warp == 0) {
      float v = 0;
      for (int i = rp[row] + lane; i < rp[row + 1]; i += 32) v += va[i] * x[ci[i]];
      meet(3 + stage);
      ring[stage][lane] = v;
      arrive(1 + stage);
    } else {
      meet(1 + stage);
      float v = ring[stage][lane];
      arrive(3 + stage);
      for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
      if (lane == 0) y[row] = v;
    }
    stage ^= 1;
  }
  if (warp == 0) meet(3), meet(4);
}
