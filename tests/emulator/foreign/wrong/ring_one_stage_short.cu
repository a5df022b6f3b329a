// Values are copied to a ring of three stages, three ahead: the fourth copy goes to the stage that is read next.
__device__ void copy(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");  // BUG
}
// launch: spmv<<<(num_rows + 31) / 32, 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* row_ptr, const int* col, const float* val, const float* x, float* y, int rows) {
  __shared__ float stages[3][32];
  const int lane = threadIdx.x, first = blockIdx.x * 32, row = first + lane;
  const int from = row_ptr[first], to = row_ptr[min(first + 32, rows)], steps = (to - from + 31) / 32;
  auto fetch = [&](int step) {
    const int i = from + step * 32 + lane;
    if (step < steps && i < to) copy(&stages[step % 3][lane], val + i);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int step = 0; step < 3; ++step) fetch(step);
  float sum = 0;
  for (int step = 0; step < steps; ++step) {
    fetch(step + 3);  // BUG
    asm volatile("cp.async.wait_group 3;" ::: "memory");
    __syncwarp();
    const int begin = from + step * 32;
    if (row < rows)
      for (int i = max(row_ptr[row], begin); i < min(row_ptr[row + 1], begin + 32); ++i)
        sum += stages[step % 3][i - begin] * x[col[i]];  // BUG
    __syncwarp();
  }
  if (row < rows) y[row] = sum;
}
