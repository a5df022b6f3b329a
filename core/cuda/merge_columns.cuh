#pragma once
#include "merge_scan.cuh"

// SpMM by merge tiles: each group of neighbouring threads holds neighbouring columns and walks
// equally many items.
template <typename Part, typename Offset, typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void merge_columns(Part part, u32 tile, u32 column_tile,
                                              MergeItems<Offset> items, Carry carry, In input,
                                              Out output, unsigned char (&scratch)[SCRATCH]) {
  using Sum = typename Part::Sum;
  constexpr u32 STRIDE = Part::column_lanes, ITEMS = Part::items_per_group, UNROLL = 8;
  static_assert(SCRATCH >= BLOCK / 32 * (STRIDE * sizeof(Sum) + 4), "warp sums");
  // A launch has at least one block, also without rows.
  if (tile >= carry.tile_count) return;
  const MergeWalk<STRIDE, ITEMS, Offset> path(tile, items);
  part.with_base_of(tile * (BLOCK / STRIDE) + threadIdx.x / STRIDE);
  RowSums<Sum> sums;
  u32 row = path.row, item = 0, bits = path.word(0);
  // Takes the next item; true for a row's end.
  const auto take = [&] {
    if (ITEMS > 32 && item > 0 && item % 32 == 0) bits = path.word(item / 32);
    const bool is_end = bits & 1u;
    bits >>= 1;
    ++item;
    return is_end;
  };
  for (u32 done = 0; done < path.entry_count; done += UNROLL) {
    const u32 left = path.entry_count - done;
    Scalar value[UNROLL];
    u32 column[UNROLL];
    Sum x[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const size_t entry = size_t(path.entry) + done + u;
      column[u] = part.column(entry, u == 0 || u < left);
      value[u] = part.value(entry, u == 0 || u < left);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) x[u] = operand_if(u == 0 || u < left, input, column[u]);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      if (u < left) {
        while (take()) sums.end(row++, part, output);
        multiply_add(sums.sum, true, value[u], x[u]);
      }
    }
  }
  while (item < path.item_count) {
    take();
    sums.end(row++, part, output);
  }
  sums.template finish<STRIDE>(part, tile, column_tile, row, items, carry, output, scratch);
}
