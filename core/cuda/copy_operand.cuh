#pragma once
#include "types.cuh"

// Copies an element of x to shared memory, where it is behind wait_for_copies().
__device__ __forceinline__ void copy_operand(Scalar* to, const Dense* from) {
#if __CUDA_ARCH__ >= 800
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from),
               "n"(sizeof(Scalar)) : "memory");
#else
  *to = *from;
#endif
}
