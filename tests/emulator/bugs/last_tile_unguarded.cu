// The last tile of x is staged in full, although x ends within it.
// launch: <<<1, 64>>>
// argument: x read-only f32 200 random
// argument: y output f32 64
// argument: size i32 value 200
extern "C" __global__ void last_tile_unguarded(const float* x, float* y, int size) {
  __shared__ float tile[64];
  float sum = 0;
  for (int first = 0; first < size; first += 64) {
    tile[threadIdx.x] = x[first + threadIdx.x];  // BUG: out-of-bounds
    __syncthreads();
    sum += first + 63 - (int)threadIdx.x < size ? tile[63 - threadIdx.x] : 0;
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}
