// Diagonals, whose offsets are staged in shared memory.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=100 mean=5 band=4
// argument: offsets read-only i32 dia-offsets
// argument: values read-only f32 dia-values
// argument: x read-only f32 100 random
// argument: y output f32 100
// argument: size i32 value 100
// argument: diagonals i32 dia-count
// expect: y spmv x
extern "C" __global__ void dia(const int* offsets, const float* values, const float* x, float* y, int size, int diagonals) {
  __shared__ int staged[32];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < diagonals) staged[threadIdx.x] = offsets[threadIdx.x];
  __syncthreads();
  if (row >= size) return;
  float sum = 0;
  for (int d = 0; d < diagonals; ++d) {
    const int column = row + staged[d];
    if (column >= 0 && column < size) sum += values[d * size + row] * x[column];
  }
  y[row] = sum;
}
