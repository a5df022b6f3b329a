#pragma once
#include "half.cuh"

// Whether the tensor cores take the operands: both half precisions from compute capability 8.0 on.
__device__ constexpr bool has_tensor_cores() {
#if __CUDA_ARCH__ >= 800
  return true;
#else
  return false;
#endif
}

// sum += a * b by the tensor cores, of a whole warp: a is 16 x 8, b is 8 x 8 and the sums are 16 x
// 8, of which each thread holds what PTX's mma.m16n8k8 says.
__device__ __forceinline__ void multiply_add_tile(float& s0, float& s1, float& s2, float& s3,
                                                  u32 a0, u32 a1, u32 b) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.Dense.Dense.f32 {%0, %1, %2, %3}, "
               "{%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(s0), "+f"(s1), "+f"(s2), "+f"(s3) : "r"(a0), "r"(a1), "r"(b));
#endif
}

// Two values in a word, the first below.
__device__ __forceinline__ u32 pair_of(Dense first, Dense second) {
  return u32(second.bits) << 16 | first.bits;
}

// The pair with zeros in place of NaN, which is no entry.
__device__ __forceinline__ u32 entries_or_zeros(u32 pair) {
  const Scalar first = Dense{u16(pair)}, second = Dense{u16(pair >> 16)};
  return (first == first ? pair & 0xffffu : 0) | (second == second ? pair & 0xffff0000u : 0);
}
