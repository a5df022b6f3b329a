// Pairs of products are added to a pair of sums that begins at an odd float: vectors of atomics are aligned as a whole.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float4 sums[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x;
  if (threadIdx.x == 0) sums[row] = make_float4(0, 0, 0, 0);
  __syncthreads();
  for (int i = rp[row] + threadIdx.x * 2; i < rp[row + 1]; i += 128) {
    const float first = va[i] * x[ci[i]], second = i + 1 < rp[row + 1] ? va[i + 1] * x[ci[i + 1]] : 0;
    float* const pair = &sums[row].y;
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(pair), "f"(first), "f"(second));  // BUG
  }
  __syncthreads();
  if (threadIdx.x == 0) y[row] = sums[row].y + sums[row].z;
}
