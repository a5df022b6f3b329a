#pragma once
#include "types.cuh"

// The dense vector x.
template <typename T>
struct Input {
  using Sum = T;
  const T* __restrict__ x;

  __device__ __forceinline__ T at(u32 column) const { return x[column]; }
};

// sum += a * x where `live`. Elsewhere x may be anything, also infinite.
template <typename T>
__device__ __forceinline__ void multiply_add(T& sum, bool live, T a, T x) {
  sum = live ? fma(a, x, sum) : sum;
}

// The dense vector y = alpha * A * x + beta * y. The old y is not read when beta is 0.
template <typename T>
struct Output {
  static constexpr u32 columns = 1, column = 0;
  T* __restrict__ y;
  T alpha, beta;

  __device__ __forceinline__ void store(u32 row, T sum) const {
    const T product = alpha * sum;
    y[row] = beta == T(0) ? product : fma(beta, y[row], product);
  }
};

template <typename T>
__device__ __forceinline__ T shuffle_xor(T sum, u32 offset) {
  return __shfl_xor_sync(FULL_WARP, sum, offset);
}

template <typename T>
__device__ __forceinline__ T shuffle_up(T sum, u32 offset) {
  return __shfl_up_sync(FULL_WARP, sum, offset);
}

// Reads past L1, which may hold what the address held before.
template <typename T>
__device__ __forceinline__ T load_from_l2(const T* address) {
  return __ldcg(address);
}
