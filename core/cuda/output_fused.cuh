#pragma once
#include "types.cuh"

// A product that is rounded whatever it is added to, so that an epilogue is given the same numbers
// wherever it is fused into.
__device__ __forceinline__ Scalar rounded(Scalar a, Scalar b) {
  if constexpr (sizeof(Scalar) == sizeof(float)) return __fmul_rn(a, b);
  return __dmul_rn(a, b);
}

// The dense vector z = epilogue(row, alpha * A * x, beta * y, user), where z may be y. y is not
// read when beta is 0.
struct Output {
  Scalar* z;
  const Scalar* y;
  Scalar alpha, beta;
  User user;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar old = beta == 0 ? Scalar(0) : rounded(beta, y[row]);
    z[row] = epilogue(row, rounded(alpha, sum), old, user);
  }
};
