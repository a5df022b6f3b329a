// A short row fills only the beginning of the tile, and the reduction takes all of it.
// launch: <<<16, 32>>>
// matrix: rows=16 columns=100 mean=12
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 100 random
// argument: y output f32 16
extern "C" __global__ void tile_partly_filled(const int* row_ptr, const int* columns, const float* values, const float* x, float* y) {
  __shared__ float products[32];
  const int lane = threadIdx.x, begin = row_ptr[blockIdx.x], length = row_ptr[blockIdx.x + 1] - begin;
  if (lane < length) products[lane] = values[begin + lane] * x[columns[begin + lane]];
  __syncwarp();
  float sum = products[lane];  // BUG: uninitialised
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) y[blockIdx.x] = sum;
}
