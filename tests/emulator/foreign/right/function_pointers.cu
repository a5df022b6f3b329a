// Odd and even rows are multiplied by functions of their own, whose addresses are in a table.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
typedef float (*Product)(float, float);
__device__ __noinline__ float forwards(float a, float b) { return a * b; }
__device__ __noinline__ float backwards(float a, float b) { return b * a; }
__device__ Product products[2] = {forwards, backwards};
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += products[row & 1](va[i], x[ci[i]]);
  y[row] = sum;
}
