#pragma once
#include "types.cuh"

// Brings lines of 128 bytes to L2 before the addresses of loads are known, by the first blocks.
__device__ __forceinline__ void prefetch(const void* array, u32 lines) {
  const u32 blocks = min(gridDim.x, 1024u), first = blockIdx.x < blocks ? blockIdx.x : lines;
  for (u32 i = first + threadIdx.x * blocks; i < lines; i += BLOCK * blocks)
    asm volatile("prefetch.global.L2 [%0];" ::"l"((const char*)array + size_t(i) * 128));
}
