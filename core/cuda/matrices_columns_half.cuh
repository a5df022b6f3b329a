#pragma once
#include "matrices_half.cuh"
#include "matrices_operand.cuh"
#include "stored.cuh"

// Several columns are moved by one load or store of words: of elements the compiler would make
// several.
template <u32 V>
__device__ __forceinline__ Pack<V> load_columns_if(bool live, const Dense* from) {
  Pack<V> pack;
  if constexpr (V == 1) {
    pack.at[0] = load_operand_if(live, from);
  } else {
    const auto stored = load_operand_if(live, reinterpret_cast<const Stored<V>*>(from));
    for (u32 v = 0; v < V; ++v) pack.at[v] = Dense{u16(stored.words[v / 2] >> v % 2 * 16)};
  }
  return pack;
}

template <u32 V>
__device__ __forceinline__ void store_columns(Dense* to, const Pack<V>& pack, u32 streamed) {
  if constexpr (V == 1) {
    store_result(to, Dense::nearest(pack.at[0]), streamed);
  } else {
    store_result(reinterpret_cast<Stored<V>*>(to), to_stored(pack), streamed);
  }
}
