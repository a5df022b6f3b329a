#include <cuda_bf16.h>
// launch: spmv<<<ceil(nnz / 128), 128>>>(nnz, num_rows, row_offsets, columns, values, x, y)
__global__ void spmv(int entries, int rows, const int* offsets, const int* columns,
                     const __nv_bfloat16* values, const __nv_bfloat16* x, __nv_bfloat16* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= entries) return;
  int row = 0;
  while (offsets[row + 1] <= i) ++row;
  atomicAdd(y + row, values[i] * x[columns[i]]);  // BUG: onto what was there
}
