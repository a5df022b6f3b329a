#pragma once
#include "matrices_columns_half.cuh"

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <u32 V>
struct Input { const Dense* B; u32 column; };

// A thread's columns of a row of B, where `live`.
template <u32 V>
__device__ __forceinline__ Pack<V> operand_if(bool live, Input<V> B, u32 row) {
  static_assert(COLUMNS % V == 0, "threads have whole vectors");
  const bool has_columns = COLUMNS % (32 * V) == 0 || B.column < COLUMNS;
  return load_columns_if<V>(live && has_columns, B.B + size_t(row) * COLUMNS + B.column);
}

// The same as they lie in memory.
template <u32 V>
__device__ __forceinline__ Stored<V> stored_operand_if(bool live, Input<V> B, u32 row) {
  static_assert(COLUMNS % V == 0, "threads have whole vectors");
  const bool has_columns = COLUMNS % (32 * V) == 0 || B.column < COLUMNS;
  const Dense* from = B.B + size_t(row) * COLUMNS + B.column;
  return load_operand_if(live && has_columns, reinterpret_cast<const Stored<V>*>(from));
}
