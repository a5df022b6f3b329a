#pragma once
#include "types.cuh"

// Column indices as they are: entry i is in column at(i).
template <typename Index, typename Cache>
struct AbsoluteColumns {
  const Index* __restrict__ index;

  __device__ __forceinline__ AbsoluteColumns of(u32) const { return *this; }
  template <typename Offset>
  __device__ __forceinline__ u32 at(Offset i) const { return Cache::load(index + i); }
};

// Column indices as distances from the first column of their unit (row, slice, block row or tile):
// of(unit) reads that column once, at(i) gives the column of entry i.
template <typename Index, typename Cache>
struct RelativeColumns {
  const Index* __restrict__ distance;
  const u32* __restrict__ bases;

  struct Unit {
    const Index* __restrict__ distance;
    u32 base;
    template <typename Offset>
    __device__ __forceinline__ u32 at(Offset i) const { return base + Cache::load(distance + i); }
  };
  __device__ __forceinline__ Unit of(u32 unit) const { return {distance, __ldg(bases + unit)}; }
};
