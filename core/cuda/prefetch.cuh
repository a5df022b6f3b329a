#pragma once
#include "types.cuh"

// Brings lines of 128 bytes to L2 before the addresses of loads are known. Each of the first blocks
// has a share, as many of them as is a power of 2, since to divide would take longer.
__device__ __forceinline__ void prefetch(const void* array, u32 lines) {
  const u32 log = min(31 - __clz(gridDim.x), 10), share = (lines + (1u << log) - 1) >> log;
  const u32 first = blockIdx.x * share;
  if (first >= lines) return;
  const size_t from = size_t(array) / 16 * 16 + size_t(first) * 128;
  const u32 count = min(share, lines - first);
#if __CUDA_ARCH__ >= 900  // By one instruction, of less than 1 MiB:
  const u32 bytes = min(count, 8191u) * 128;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
#else
  for (u32 i = 0; i < count; ++i) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i * 128));
#endif
}
