#pragma once
#include "matrices_half.cuh"
#include "matrices_input_strided.cuh"

// A thread's columns of a row of B as they lie in memory, where `live`.
template <u32 V>
__device__ __forceinline__ Stored<V> stored_operand_if(bool live, Input<V> B, u32 row) {
  return to_stored(operand_if(live, B, row));
}
