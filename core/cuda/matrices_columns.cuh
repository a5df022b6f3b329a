#pragma once
#include "matrices.cuh"
#include "matrices_operand.cuh"
#include "stored.cuh"

// Several columns are moved by one load or store.
template <u32 V>
__device__ __forceinline__ Pack<V> load_columns_if(bool live, const Dense* from) {
  return load_operand_if(live, reinterpret_cast<const Pack<V>*>(from));
}

template <u32 V>
__device__ __forceinline__ void store_columns(Dense* to, const Pack<V>& pack, u32 streamed) {
  store_result(reinterpret_cast<Pack<V>*>(to), pack, streamed);
}
