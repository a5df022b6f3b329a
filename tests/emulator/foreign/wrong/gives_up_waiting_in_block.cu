// A warp waits for another one for a while, and takes what is there when it has waited long enough.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float half;
  __shared__ int is_there;
  const int row = blockIdx.x, t = threadIdx.x;
  if (t == 0) half = 0, is_there = 0;
  __syncthreads();
  float sum = 0;
  for (int i = rp[row] + t % 32 * 2 + t / 32; i < rp[row + 1]; i += 64) sum += va[i] * x[ci[i]];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (t == 32) {
    *(volatile float*)&half = sum;
    __threadfence_block();
    atomicExch(&is_there, 1);
  }
  if (t == 0) {
    for (int looks = 0; looks < 2000 && atomicAdd(&is_there, 0) == 0; ++looks) {}
    __threadfence_block();
    y[row] = sum + *(volatile float*)&half;
  }
}
