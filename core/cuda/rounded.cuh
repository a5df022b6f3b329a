#pragma once
#include "types.cuh"

// A product that is rounded whatever it is added to, so that an epilogue is given the same numbers
// wherever it is fused into.
__device__ __forceinline__ Scalar rounded(Scalar a, Scalar b) {
  if constexpr (sizeof(Scalar) == sizeof(float)) return __fmul_rn(a, b);
  return __dmul_rn(a, b);
}
