#include <cuda_bf16.h>
// What halves have to give, whatever they are: a row where it does not hold becomes 7.
__device__ bool holds(__nv_bfloat16 a, __nv_bfloat16 b) {
  bool all = (a + b) == __nv_bfloat16(float(a) + float(b)) && (a - b) == __nv_bfloat16(float(a) - float(b));
  all &= (a * b) == __nv_bfloat16(float(a) * float(b)) && -a == __nv_bfloat16(-float(a));
  all &= __habs(a) == __nv_bfloat16(fabsf(a)) && __hmax(a, b) == (a > b ? a : b) && !(a < a) && a <= a;
  __nv_bfloat16 c = a;
  c += b;
  all &= c == __hadd(a, b) && __bfloat16_as_ushort(__ushort_as_bfloat16(0x3c00)) == 0x3c00;
  const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b), other = make_bfloat162(b, a);
  const __nv_bfloat162 sum = __hadd2(pair, other), product = __hfma2(pair, other, __nv_bfloat162(__nv_bfloat16(0), __nv_bfloat16(0)));
  all &= __low2bfloat16(sum) == a + b && __high2bfloat16(sum) == b + a;
  all &= __low2float(product) == float(a * b) && __high2float(__hneg2(pair)) == -float(b);
  all &= __hfma(a, __nv_bfloat16(1), __nv_bfloat16(0)) == a && __bfloat162int_rn(__int2bfloat16_rn(12)) == 12;
  const unsigned lanes = __activemask();
  all &= float(__shfl_sync(lanes, a, threadIdx.x % 32)) == float(a);
  return all && hsqrt(__nv_bfloat16(4)) == __nv_bfloat16(2) && __hisnan(__nv_bfloat16(0) / __nv_bfloat16(0));
}
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const __nv_bfloat16* values,
                     const __nv_bfloat16* x, __nv_bfloat16* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  bool all = true;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) {
    all &= holds(values[i], x[columns[i]]);
    sum += float(values[i]) * float(x[columns[i]]);
  }
  sum = alpha * sum + (beta != 0 ? beta * float(y[row]) : 0.f);
  y[row] = all ? __nv_bfloat16(sum) : __nv_bfloat16(7);
}
