#pragma once
#include "to_dense.cuh"
#include "rounded.cuh"

// The dense vector z = epilogue(row, alpha * A * x, beta * y, user), where z may be y. y is not
// read when beta is 0.
struct Output {
  Dense* z;
  const Dense* y;
  Scalar alpha, beta;
  User user;
  __device__ void store(u32 row, Scalar sum) const {
    const Scalar old = beta == 0 ? Scalar(0) : rounded(beta, y[row]);
    z[row] = to_dense(epilogue(row, rounded(alpha, sum), old, user));
  }
};
