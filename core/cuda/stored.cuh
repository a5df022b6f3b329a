#pragma once
#include "types.cuh"

// Stores an element or several of a dense matrix; streamed, they are the first to leave the caches.
template <typename T>
__device__ __forceinline__ void store_result(T* to, const T& from, u32 streamed) {
  if (!streamed) *to = from;
  else if constexpr (sizeof(T) == 2) __stcs((u16*)to, *(const u16*)&from);
  else if constexpr (sizeof(T) == 4) __stcs((u32*)to, *(const u32*)&from);
  else if constexpr (sizeof(T) == 8) __stcs((uint2*)to, *(const uint2*)&from);
  else for (u32 i = 0; i < sizeof(T) / 16; ++i) __stcs((uint4*)to + i, ((const uint4*)&from)[i]);
}
