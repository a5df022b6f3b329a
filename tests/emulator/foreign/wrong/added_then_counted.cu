// Parts of rows are added in memory and counted: nothing orders a part's addition before its count, so the last to count
// may take a sum that lacks it.
// launch: spmv<<<dim3(ceil(num_rows / 64), 3), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float sums[4096];
__device__ unsigned counts[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row] + blockIdx.y; i < rp[row + 1]; i += 3) sum += va[i] * x[ci[i]];
  atomicAdd(&sums[row], sum);
  if (atomicInc(&counts[row], 2u) == 2u) {  // BUG
    __threadfence();
    y[row] = atomicExch(&sums[row], 0.f);
  }
}
