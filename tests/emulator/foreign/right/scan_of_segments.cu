// A block scans products of entries by segments, and carries the open row from tile to tile.
// launch: spmv<<<1, 128>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ int row_of(const int* rp, int n, int i) {
  int lo = 0, hi = n;
  while (hi - lo > 1) {
    const int mid = (lo + hi) / 2;
    if (rp[mid] <= i) lo = mid; else hi = mid;
  }
  return lo;
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  __shared__ float tails[4];
  __shared__ int rows[4];
  __shared__ float carry;
  __shared__ int carry_row;
  for (int r = threadIdx.x; r < n; r += 128) y[r] = 0;
  if (threadIdx.x == 0) carry_row = -1, carry = 0;
  __syncthreads();
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  for (int base = 0; base < nnz; base += 128) {
    const int i = base + threadIdx.x;
    const int row = i < nnz ? row_of(rp, n, i) : n;
    float v = i < nnz ? va[i] * x[ci[i]] : 0;
    for (int d = 1; d < 32; d *= 2) {
      const float o = __shfl_up_sync(~0u, v, d);
      const int r = __shfl_up_sync(~0u, row, d);
      if (lane >= d && r == row) v += o;
    }
    if (lane == 31) tails[warp] = v, rows[warp] = row;
    __syncthreads();
    float before = 0;
    for (int w = 0; w < warp; ++w) before = rows[w] == row ? (w && rows[w - 1] == row ? before : 0) + tails[w] : 0;
    // Only segments that reach to the end of the warp before count.
    bool open = true;
    if (warp > 0) open = rows[warp - 1] == row;
    if (warp > 0 && !open) before = 0;
    if (carry_row == row) before += carry;
    const int next = i + 1 < nnz ? row_of(rp, n, i + 1) : n;
    const float total = v + before;
    __syncthreads();
    if (threadIdx.x == 127) carry = total, carry_row = row;
    if (i < nnz && next != row) y[row] = total;
    __syncthreads();
  }
}
