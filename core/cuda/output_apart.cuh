#pragma once
#include "to_dense.cuh"

// The dense vector z = alpha * A * x + beta * y, where z may be y. y is not read when beta is 0.
struct Output {
  Dense* z;
  const Dense* y;
  Scalar alpha, beta;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar product = alpha * sum;
    z[row] = to_dense(beta == 0 ? product : fma(beta, Scalar(y[row]), product));
  }
};
