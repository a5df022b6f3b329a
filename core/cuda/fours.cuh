#pragma once
#include "types.cuh"

// Adds up the entries of one lane: those of every LANES-th four of a run, UNROLL fours at a time.
// Loads past the end repeat the batch's first four instead of branching.
template <u32 LANES, typename Part, typename Sum, typename I, typename In>
__device__ __forceinline__ void walk_fours(Sum& sum, Part part, I four, I end, I entries_end,
                                           In input) {
  constexpr u32 UNROLL = Part::unroll;
  for (; four < end; four += UNROLL * LANES) {
    Scalar value[UNROLL][4];
    u32 column[UNROLL][4];
    Sum x[UNROLL][4];
    bool live[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      live[u] = u == 0 || u * LANES < end - four;
      const size_t first = size_t(live[u] ? four + u * LANES : four) * 4;
      part.columns_at(first, column[u]);
      part.values_at(first, value[u]);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 j = 0; j < 4; ++j) x[u][j] = operand_if(live[u], input, column[u][j]);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const bool is_entry = (four + u * LANES) * 4 + j < entries_end;
        multiply_add(sum, is_entry, value[u][j], x[u][j]);
      }
    }
  }
}
