#pragma once
#include "types.cuh"

// The matrix row at each position of a part.

struct RowRange {
  u32 first;
  __device__ __forceinline__ u32 at(u32 position) const { return first + position; }
};

struct RowList {
  const u32* __restrict__ rows;
  __device__ __forceinline__ u32 at(u32 position) const { return __ldg(rows + position); }
};
