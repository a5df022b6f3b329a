#pragma once
#include "matrices.cuh"
#include "matrices_operand.cuh"
#include "stored.cuh"
#include "to_dense.cuh"

// Columns are moved one by one: rows begin wherever an element may.
template <u32 V>
__device__ __forceinline__ Pack<V> load_columns_if(bool live, const Dense* from) {
  Pack<V> pack;
  for (u32 v = 0; v < V; ++v) pack.at[v] = load_operand_if(live, from + v);
  return pack;
}

template <u32 V>
__device__ __forceinline__ void store_columns(Dense* to, const Pack<V>& pack, u32 streamed) {
  for (u32 v = 0; v < V; ++v) store_result(to + v, to_dense(pack.at[v]), streamed);
}
