// Blocks take tiles of entries in the order in which they begin, and hand the open row's sum to the next.
// launch: spmv<<<ceil(nnz / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ unsigned tickets;
__device__ unsigned long long handed;  // tile << 32 | bits of the sum
__device__ unsigned ended;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  __shared__ float products[128];
  __shared__ unsigned tile_;
  if (threadIdx.x == 0) tile_ = atomicAdd(&tickets, 1);
  __syncthreads();
  const unsigned tile = tile_;
  const int from = tile * 128, to = min(nnz, from + 128), i = from + threadIdx.x;
  products[threadIdx.x] = i < nnz ? va[i] * x[ci[i]] : 0;
  for (int r = threadIdx.x; tile == 0 && r < n; r += 128) if (rp[r] == rp[r + 1]) y[r] = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    float carry = 0;
    if (tile > 0) {
      unsigned long long h;
      do h = atomicAdd(&handed, 0ull);
      while (h >> 32 != tile);
      carry = __uint_as_float((unsigned)h);
    }
    int lo = 0, hi = n;
    while (hi - lo > 1) {
      const int mid = (lo + hi) / 2;
      if (rp[mid] <= from) lo = mid; else hi = mid;
    }
    int row = lo;
    float sum = carry;
    for (int k = from; k < to; ++k) {
      while (k >= rp[row + 1]) ++row;
      sum += products[k - from];
      if (k + 1 == rp[row + 1]) {
        y[row] = sum;
        sum = 0;
      }
    }
    if (tile + 1 < gridDim.x) atomicExch(&handed, (unsigned long long)(tile + 1) << 32 | __float_as_uint(sum));
    else {
      tickets = 0;
      atomicExch(&handed, 0ull);
    }
  }
}
