// What a copy brings is read before anybody has waited for it.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float first[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  if (rp[row] < rp[row + 1]) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(&first[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(&va[rp[row]]) : "memory");
    asm volatile("cp.async.commit_group;");
    sum = first[threadIdx.x] * x[ci[rp[row]]];  // BUG
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
  for (int i = rp[row] + 1; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
