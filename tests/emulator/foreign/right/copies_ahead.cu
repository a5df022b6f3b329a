// Values arrive in shared memory by asynchronous copies, one stage ahead.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ void copy(float* to, const float* from) {
  const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(from) : "memory");
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  __shared__ float stage[2][64];
  const int first = blockIdx.x * 64, last = min(first + 64, n), row = first + threadIdx.x;
  const int start = rp[first], end = rp[last];
  float sum = 0;
  if (start + threadIdx.x < end) copy(&stage[0][threadIdx.x], &va[start + threadIdx.x]);
  asm volatile("cp.async.commit_group;");
  for (int at = start, turn = 0; at < end; at += 64, turn ^= 1) {
    if (at + 64 + threadIdx.x < end) copy(&stage[turn ^ 1][threadIdx.x], &va[at + 64 + threadIdx.x]);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    if (row < last) {
      for (int i = max(at, rp[row]); i < min(at + 64, rp[row + 1]); ++i) sum += stage[turn][i - at] * x[ci[i]];
    }
    __syncthreads();
  }
  if (row < last) y[row] = sum;
}
