// A staging array is overwritten while a copy from it is under way.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float staged[8192];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float arrived[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  if (row < n) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  }
  staged[row] = sum;
  const unsigned to = (unsigned)__cvta_generic_to_shared(&arrived[threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(&staged[row]) : "memory");
  staged[row] = 0;  // BUG
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (row < n) y[row] = arrived[threadIdx.x];
}
