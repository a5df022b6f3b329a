#pragma once
#include "types.cuh"

// Reads four neighbouring elements by one load, or two of 16 bytes where they are wider; their
// address is aligned to as many bytes, up to 16. Streamed elements are the first to leave the
// caches.
template <bool STREAMED, typename T, typename U>
__device__ __forceinline__ void load_four(const T* address, U (&elements)[4]) {
  constexpr u32 WORDS = sizeof(T);
  union {
    T at[4];
    u32 word[WORDS];
  } four;
  if constexpr (WORDS == 1) {
    const auto* from = reinterpret_cast<const u32*>(address);
    four.word[0] = STREAMED ? __ldcs(from) : __ldg(from);
  } else if constexpr (WORDS == 2) {
    const auto* from = reinterpret_cast<const uint2*>(address);
    const uint2 words = STREAMED ? __ldcs(from) : __ldg(from);
    four.word[0] = words.x, four.word[1] = words.y;
  } else {
    const auto* from = reinterpret_cast<const uint4*>(address);
#pragma unroll
    for (u32 i = 0; i < WORDS / 4; ++i) {
      const uint4 words = STREAMED ? __ldcs(from + i) : __ldg(from + i);
      four.word[4 * i] = words.x, four.word[4 * i + 1] = words.y;
      four.word[4 * i + 2] = words.z, four.word[4 * i + 3] = words.w;
    }
  }
#pragma unroll
  for (u32 j = 0; j < 4; ++j) elements[j] = four.at[j];
}
