// A row's begin and length are handed on in one word of 64 bits, of which each is a half.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ unsigned long long spans[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  const unsigned begin = row < n ? rp[row] : 0, length = row < n ? rp[row + 1] - begin : 0;
  spans[63 - threadIdx.x] = (unsigned long long)length << 32 | begin;
  __syncthreads();
  const unsigned long long span = spans[63 - threadIdx.x];
  const int first = (int)(unsigned)span;
  float sum = 0;
  for (int i = first; i < first + (int)(span >> 32); ++i) sum += va[i] * x[ci[i]];
  if (row < n) y[row] = sum;
}
