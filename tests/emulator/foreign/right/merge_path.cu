// Threads split rows and entries evenly along the merge path; the parts of rows go to y by atomics, after a first phase
// behind a barrier of the grid has zeroed it.
// launch: spmv<<<8, 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
__device__ unsigned arrived, generation;

__device__ void grid_barrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = *(volatile unsigned*)&generation;
    __threadfence();
    if (atomicAdd(&arrived, 1u) == gridDim.x - 1) {
      *(volatile unsigned*)&arrived = 0;
      __threadfence();
      *(volatile unsigned*)&generation = before + 1;
    } else {
      while (*(volatile unsigned*)&generation == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int nnz) {
  const int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  for (int row = me; row < n; row += threads) y[row] = 0;
  grid_barrier();
  const int items = n + nnz, each = (items + threads - 1) / threads;
  const int start = min(me * each, items), end = min(start + each, items);
  int low = max(0, start - nnz), high = min(start, n);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (rp[middle + 1] <= start - 1 - middle) low = middle + 1; else high = middle;
  }
  int row = low, i = start - low;
  float sum = 0;
  for (int item = start; item < end; ++item) {
    if (row < n && i < rp[row + 1]) {
      sum += va[i] * x[ci[i]];
      ++i;
    } else {
      if (sum != 0) atomicAdd(&y[row], sum);
      sum = 0;
      ++row;
    }
  }
  if (sum != 0) atomicAdd(&y[row], sum);
}
