#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 FULL_WARP = 0xffffffffu;

// Loads of matrix arrays through the read-only cache.
struct Cached {
  template <typename T>
  __device__ static __forceinline__ T load(const T* address) {
    return __ldg(address);
  }
};

// Loads of matrix arrays that are the first to leave the caches: a product reads them once.
struct Streamed {
  template <typename T>
  __device__ static __forceinline__ T load(const T* address) {
    return __ldcs(address);
  }
};
