#pragma once
#include "types.cuh"

// The dense vector z = alpha * A * x + beta * y, where z may be y. y is not read when beta is 0.
struct Output {
  Scalar* z;
  const Scalar* y;
  Scalar alpha, beta;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar product = alpha * sum;
    z[row] = beta == 0 ? product : fma(beta, y[row], product);
  }
};
