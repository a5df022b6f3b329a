#pragma once
#include "types.cuh"

// The dense vector y = alpha * A * x + beta * y. The old y is not read when beta is 0.
struct Output {
  Scalar *y, alpha, beta;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar product = alpha * sum;
    y[row] = beta == 0 ? product : fma(beta, y[row], product);
  }
};
