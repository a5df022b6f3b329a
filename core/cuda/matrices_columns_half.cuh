#pragma once
#include "matrices_half.cuh"
#include "matrices_operand.cuh"
#include "stored.cuh"

// V neighbouring columns of a row of B or C as they lie in memory, two to a word, the first below.
template <u32 V>
struct alignas(sizeof(Dense) * V) Stored {
  u32 words[V / 2];
};

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
    Stored<V> stored{};
    for (u32 v = 0; v < V; ++v) {
      stored.words[v / 2] |= u32(Dense::nearest(pack.at[v]).bits) << v % 2 * 16;
    }
    store_result(reinterpret_cast<Stored<V>*>(to), stored, streamed);
  }
}
