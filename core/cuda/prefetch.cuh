#pragma once
#include "types.cuh"

// Brings an array's lines of 128 bytes to L2 before the addresses of the first loads are known. The
// blocks that run first share them; lines is 0 where prefetching does not pay.
template <u32 BLOCK>
__device__ __forceinline__ void prefetch(const void* array, u32 lines) {
  const u32 blocks = gridDim.x < 1024 ? gridDim.x : 1024;
  if (blockIdx.x >= blocks) return;
  for (u32 i = blockIdx.x + threadIdx.x * blocks; i < lines; i += BLOCK * blocks) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(array) + u64(i) * 128));
  }
}
