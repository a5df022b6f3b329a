#pragma once
#include "types.cuh"

// IEEE 754 binary16 as it lies in memory, like CUDA's __half. Arithmetic is in Scalar.
struct f16 {
  u16 bits;
  __device__ __forceinline__ operator Scalar() const {
    Scalar value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  static __device__ __forceinline__ f16 nearest(Scalar value) {
    f16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
    return half;
  }
};

// The upper half of a float as it lies in memory, like CUDA's __nv_bfloat16. Arithmetic is in
// Scalar.
struct bf16 {
  u16 bits;
  __device__ __forceinline__ operator Scalar() const { return __uint_as_float(u32(bits) << 16); }
  // Of two that are equally near, the even one. NaN stays NaN.
  static __device__ __forceinline__ bf16 nearest(Scalar value) {
    const u32 whole = __float_as_uint(value);
    const u32 up = value == value ? whole + 0x7fffu + (whole >> 16 & 1u) : whole | 0x400000u;
    return bf16{u16(up >> 16)};
  }
};
