// A block waits for the half of another for a while, and computes that itself if it does not come.
// launch: spmv<<<dim3(num_rows, 2), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ int claimed[1 << 14];
__device__ int is_there[1 << 14];
__device__ float halves[1 << 14];

__device__ float half(const int* rp, const int* ci, const float* va, const float* x, int row, int which) {
  float sum = 0;
  for (int i = rp[row] + threadIdx.x * 2 + which; i < rp[row + 1]; i += 64) sum += va[i] * x[ci[i]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  return sum;
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x;
  float sum = half(rp, ci, va, x, row, blockIdx.y);
  if (blockIdx.y == 1) {
    if (threadIdx.x == 0) {
      atomicExch(&halves[row], sum);
      __threadfence();
      // Who gave up waiting has left 2 there, and wants nothing.
      if (atomicExch(&is_there[row], 1) == 2) atomicExch(&is_there[row], 0);
    }
    return;
  }
  int has_come = 0;
  if (threadIdx.x == 0) {
    for (int looks = 0; looks < 4096 && !has_come; ++looks) has_come = atomicAdd(&is_there[row], 0) == 1;
    if (!has_come) has_come = atomicCAS(&is_there[row], 0, 2) == 1;
    if (has_come) {
      __threadfence();
      atomicExch(&is_there[row], 0);
    }
  }
  has_come = __shfl_sync(~0u, has_come, 0);
  const float other = has_come ? 0 : half(rp, ci, va, x, row, 1);
  if (threadIdx.x == 0) y[row] = sum + (has_come ? atomicAdd(&halves[row], 0.f) : other);
}
