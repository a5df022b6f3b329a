#pragma once
#include "types.cuh"

// Columns of a part's entries. A unit (row, slice, block row or tile) shares one base;
// `of(unit)` reads it once, `at(i)` gives the column of entry i.

template <typename Index, Cache CACHE>
struct AbsoluteColumns {
  const Index* __restrict__ index;

  struct Unit {
    const Index* __restrict__ index;
    template <typename Offset>
    __device__ __forceinline__ u32 at(Offset i) const {
      return load<CACHE>(index + i);
    }
  };
  __device__ __forceinline__ Unit of(u32) const { return {index}; }
};

template <typename Index, Cache CACHE>
struct RelativeColumns {
  const Index* __restrict__ distance;
  const u32* __restrict__ bases;

  struct Unit {
    const Index* __restrict__ distance;
    u32 base;
    template <typename Offset>
    __device__ __forceinline__ u32 at(Offset i) const {
      return base + load<CACHE>(distance + i);
    }
  };
  __device__ __forceinline__ Unit of(u32 unit) const { return {distance, __ldg(bases + unit)}; }
};
