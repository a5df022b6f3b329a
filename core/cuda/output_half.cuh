#pragma once
#include "types.cuh"

// The dense vector y = alpha * A * x + beta * y, whose elements are rounded when they are stored.
// The old y is not read when beta is 0.
struct Output {
  Dense* y;
  Scalar alpha, beta;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar product = alpha * sum;
    y[row] = Dense::nearest(beta == 0 ? product : fma(beta, Scalar(y[row]), product));
  }
};
