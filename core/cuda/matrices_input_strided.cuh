#pragma once
#include "matrices_columns.cuh"

// The dense matrix B, row-major, with ldb elements from a row to the next. A thread handles V columns
// from `column`; threads past the last column load zeros.
template <u32 V>
struct Input {
  const Dense* B;
  u32 ldb, column;
  __device__ __forceinline__ Pack<V> operator[](u32 row) const {
    static_assert(COLUMNS % V == 0, "threads have whole vectors");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return Pack<V>{};
    return load_columns<V>(B + size_t(row) * ldb + column);
  }
};
