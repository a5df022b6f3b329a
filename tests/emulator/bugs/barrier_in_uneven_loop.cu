// Each warp passes a barrier as often as its own row needs, and rows are not equally long.
// launch: <<<1, 64>>>
// matrix: rows=2 columns=400 mean=120
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 64
extern "C" __global__ void barrier_in_uneven_loop(const int* row_ptr, const float* values, float* y) {
  __shared__ float tile[64];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int first = row_ptr[warp]; first < row_ptr[warp + 1]; first += 32) {
    tile[threadIdx.x] = first + lane < row_ptr[warp + 1] ? values[first + lane] : 0;
    __syncthreads();  // BUG: divergent-barrier, deadlock
    sum += tile[warp * 32 + 31 - lane];
    __syncthreads();  // BUG: divergent-barrier, deadlock
  }
  y[threadIdx.x] = sum;
}
