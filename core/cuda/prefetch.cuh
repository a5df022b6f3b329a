#pragma once
#include "types.cuh"

// Asks for a block's share of an array's lines of 128 bytes, so that they are on their way to L2
// before the addresses of the first loads are known.
template <int BLOCK>
__device__ __forceinline__ void prefetch(const void* array, u32 lines, u32 share) {
  const u64 first = u64(blockIdx.x) * share;
  for (u32 i = threadIdx.x; i < share && first + i < lines; i += BLOCK) {
    const auto* line = static_cast<const char*>(array) + (first + i) * 128;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
  }
}
