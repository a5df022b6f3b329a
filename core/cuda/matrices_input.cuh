#pragma once
#include "matrices.cuh"

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <u32 V>
struct Input {
  const Scalar* B;
  u32 column;
  __device__ __forceinline__ Pack<V> operator[](u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return Pack<V>{};
    return *reinterpret_cast<const Pack<V>*>(B + size_t(row) * COLUMNS + column);
  }
};
