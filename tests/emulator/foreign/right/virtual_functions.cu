// Lanes of a warp call virtual functions of different classes.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
struct Product {
  __device__ virtual float of(float a, float b) const = 0;
};
struct Forwards : Product {
  __device__ float of(float a, float b) const override { return a * b; }
};
struct Scaled : Product {
  float factor;
  __device__ float of(float a, float b) const override { return a * b * factor; }
};
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  Forwards forwards;
  Scaled scaled;
  scaled.factor = 1;
  const Product* product = row % 3 ? (const Product*)&forwards : (const Product*)&scaled;
  asm volatile("" : "+l"(product));
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += product->of(va[i], x[ci[i]]);
  y[row] = sum;
}
