#pragma once
#include "types.cuh"

// An element or several of a dense operand, which earlier kernels may have written, where `live`,
// else zeros. The compiler is not to know of shared conditions: it would branch around the loads.
template <typename T>
__device__ __forceinline__ T load_operand_if(u32 live, const T* from) {
  asm volatile("" : "+r"(live) : : "memory");
  return live ? *from : T{};
}
