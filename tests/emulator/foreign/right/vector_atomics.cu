// A block for each row: products are added, by two at a time, to the four sums of the row.
// launch: spmv<<<num_rows, 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float4 sums[4096];
__device__ void add(float4* to, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x;
  if (threadIdx.x == 0) sums[row] = make_float4(0, 0, 0, 0);
  __syncthreads();
  for (int i = rp[row] + threadIdx.x * 2; i < rp[row + 1]; i += 128) {
    const float first = va[i] * x[ci[i]], second = i + 1 < rp[row + 1] ? va[i + 1] * x[ci[i + 1]] : 0;
    add(&sums[row], first, second, 0, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float a, b, c, d;
    asm volatile("atom.relaxed.gpu.global.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, %5, %5, %5};"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                 : "l"(&sums[row]), "f"(0.0f)
                 : "memory");
    y[row] = a + b + c + d;
  }
}
