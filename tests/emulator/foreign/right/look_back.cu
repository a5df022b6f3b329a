// Blocks take 64 entries each; what a row has in earlier blocks comes through a chain of carries, each a flag and a
// value in one word of 64 bits. The launch's number is part of the flag.
// launch: spmv<<<ceil(nnz / 64), 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ unsigned long long carries[4096];
__device__ unsigned launches, finished;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  __shared__ float products[64];
  __shared__ float carry;
  const int start = blockIdx.x * 64, end = min(start + 64, nnz);
  const unsigned ready = *(volatile unsigned*)&launches + 1;
  if (start + threadIdx.x < end) products[threadIdx.x] = va[start + threadIdx.x] * x[ci[start + threadIdx.x]];
  __syncthreads();
  if (threadIdx.x == 0) {
    int low = 0, high = n;  // The row of the last entry.
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (rp[middle] < end) low = middle; else high = middle;
    }
    float sum = 0;
    if (blockIdx.x > 0) {
      unsigned long long seen;
      do seen = *(volatile unsigned long long*)&carries[blockIdx.x - 1]; while (seen >> 32 != ready);
      sum = __uint_as_float((unsigned)seen);
    }
    carry = sum;
    float tail = rp[low] < start ? sum : 0;
    for (int i = max(rp[low], start); i < end; ++i) tail += products[i - start];
    if (rp[low + 1] == end) tail = 0;
    *(volatile unsigned long long*)&carries[blockIdx.x] = (unsigned long long)ready << 32 | __float_as_uint(tail);
  }
  __syncthreads();
  for (int row = threadIdx.x; row < n; row += 64) {
    const int from = rp[row], to = rp[row + 1];
    if (from == to && blockIdx.x == 0) y[row] = 0;
    if (from == to || to <= start || to > end) continue;
    float sum = from < start ? carry : 0;
    for (int i = max(from, start); i < to; ++i) sum += products[i - start];
    y[row] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&finished, 1u) == gridDim.x - 1) {
      finished = 0;
      *(volatile unsigned*)&launches = ready;
    }
  }
}
