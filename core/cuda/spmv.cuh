#pragma once
#include "types.cuh"

// sum += a * x where `live`. Elsewhere x may be anything, also infinite.
__device__ __forceinline__ void multiply_add(Scalar& sum, bool live, Scalar a, Scalar x) {
  sum = live ? fma(a, x, sum) : sum;
}

// The vector y is a single column.
constexpr u32 COLUMNS = 1;
__device__ constexpr u32 column_of(const Output&) { return 0; }

__device__ __forceinline__ Scalar shuffle_up(Scalar sum, u32 offset) {
  return __shfl_up_sync(FULL_WARP, sum, offset);
}

// Reads past L1, which may hold what the address held before.
__device__ __forceinline__ Scalar load_from_l2(const Scalar* address) {
  return __ldcg(address);
}

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <u32 LANES, u32 STRIDE>
__device__ __forceinline__ void reduce_lanes(Scalar& sum) {
#pragma unroll
  for (u32 d = STRIDE; d < LANES * STRIDE; d *= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
}

// An element of x, which earlier kernels may have written, where `live`, else 0. The compiler is
// not to know of shared conditions: it would branch around the loads.
__device__ __forceinline__ Dense load_operand_if(u32 live, const Dense* from) {
  asm volatile("" : "+r"(live) : : "memory");
  return live ? *from : Dense{};
}

// The element of x for a column, where `live`.
__device__ __forceinline__ Scalar operand_if(bool live, const Dense* x, u32 column) {
  return load_operand_if(live, x + column);
}
