// What is stored after a fence has one of its own before the state that says that it is there; the third block hears of
// it through the second.
// launch: spmv<<<3 * ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float partial[4096];
__device__ volatile float carry[4096];
__device__ volatile unsigned state[4096];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int third = blockIdx.x % 3, row = blockIdx.x / 3 * 32 + threadIdx.x;
  if (row >= n) return;
  const int first = rp[row], length = rp[row + 1] - first;
  float sum = 0;
  for (int i = first + length * third / 3; i < first + length * (third + 1) / 3; ++i) sum += va[i] * x[ci[i]];
  if (third == 0) {
    partial[row] = sum / 2;
    __threadfence();
    carry[row] = sum / 2;
    __threadfence();
    state[row] = 1;
  } else if (third == 1) {
    while (state[row] != 1) {
    }
    __threadfence();
    partial[row] += sum;
    __threadfence();
    state[row] = 2;
  } else {
    while (state[row] != 2) {
    }
    __threadfence();
    y[row] = sum + partial[row] + carry[row];
    state[row] = 0;
  }
}
