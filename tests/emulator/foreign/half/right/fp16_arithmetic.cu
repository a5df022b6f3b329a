#include <cuda_fp16.h>
// What halves have to give, whatever they are: a row where it does not hold becomes 7.
__device__ bool holds(half a, half b) {
  bool all = (a + b) == half(float(a) + float(b)) && (a - b) == half(float(a) - float(b));
  all &= (a * b) == half(float(a) * float(b)) && -a == half(-float(a));
  all &= __habs(a) == half(fabsf(a)) && __hmax(a, b) == (a > b ? a : b) && !(a < a) && a <= a;
  half c = a;
  c += b;
  all &= c == __hadd(a, b) && __half_as_ushort(__ushort_as_half(0x3c00)) == 0x3c00;
  const half2 pair = __floats2half2_rn(a, b), other = make_half2(b, a);
  const half2 sum = __hadd2(pair, other), product = __hfma2(pair, other, half2(half(0), half(0)));
  all &= __low2half(sum) == a + b && __high2half(sum) == b + a;
  all &= __low2float(product) == float(a * b) && __high2float(__hneg2(pair)) == -float(b);
  all &= __hfma(a, half(1), half(0)) == a && __half2int_rn(__int2half_rn(12)) == 12;
  const unsigned lanes = __activemask();
  all &= float(__shfl_sync(lanes, a, threadIdx.x % 32)) == float(a);
  return all && hsqrt(half(4)) == half(2) && __hisnan(half(0) / half(0));
}
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const half* values,
                     const half* x, half* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  bool all = true;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) {
    all &= holds(values[i], x[columns[i]]);
    sum += float(values[i]) * float(x[columns[i]]);
  }
  sum = alpha * sum + (beta != 0 ? beta * float(y[row]) : 0.f);
  y[row] = all ? half(sum) : half(7);
}
