#pragma once
#include "types.cuh"

// Rows of the matrix in its own order.
struct AllRows {
  __device__ __forceinline__ u32 at(u32 position) const { return position; }
};

// Neighbouring rows of the matrix.
struct RowRange {
  u32 first;
  __device__ __forceinline__ u32 at(u32 position) const { return first + position; }
};

// The row of the matrix at each position of a part.
struct RowList {
  const u32* __restrict__ rows;
  __device__ __forceinline__ u32 at(u32 position) const { return __ldg(rows + position); }
};
