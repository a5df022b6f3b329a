#pragma once
#include "matrices.cuh"
#include "matrices_operand.cuh"

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <u32 V>
struct Input { const Scalar* B; u32 column; };

// A thread's columns of a row of B, where `live`.
template <u32 V>
__device__ __forceinline__ Pack<V> operand_if(bool live, Input<V> B, u32 row) {
  static_assert(COLUMNS % V == 0, "threads have whole vectors");
  const bool has_columns = COLUMNS % (32 * V) == 0 || B.column < COLUMNS;
  const Dense* from = B.B + size_t(row) * COLUMNS + B.column;
  return load_operand_if(live && has_columns, reinterpret_cast<const Pack<V>*>(from));
}
