#pragma once
#include "merge_scan.cuh"

// SpMM by merge tiles: each group of neighbouring threads holds neighbouring columns and walks equally
// many items.
template <typename Mapping, typename Offset, typename T, typename Rows, typename Columns,
          typename Values, typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void merge_columns(u32 tile, u32 column_tile, MergeItems<Offset> items,
                                              Carry<T> carry, Rows rows, Columns columns,
                                              Values values, In input, Out output,
                                              unsigned char (&scratch)[SCRATCH]) {
  using Sum = typename In::Sum;
  constexpr u32 BLOCK = Mapping::block_threads, STRIDE = Mapping::column_lanes;
  constexpr u32 ITEMS = Mapping::items_per_group, UNROLL = 8;
  static_assert(SCRATCH >= BLOCK / 32 * (STRIDE * sizeof(Sum) + 4), "warp sums");
  // A launch has at least one block, also without rows.
  if (tile >= carry.tile_count) return;
  const MergeWalk<BLOCK, STRIDE, ITEMS, Offset> path(tile, items);
  const auto unit = columns.of(tile * (BLOCK / STRIDE) + threadIdx.x / STRIDE);
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
    T value[UNROLL];
    u32 column[UNROLL];
    Sum x[UNROLL];
    // Loads past the end repeat the batch's first entry instead of branching.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const auto entry = path.entry + done + (u < left ? u : 0);
      value[u] = values.at(entry);
      column[u] = unit.at(entry);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) x[u] = input.at(column[u]);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      if (u < left) {
        while (take()) sums.end(row++, rows, output);
        multiply_add(sums.sum, true, value[u], x[u]);
      }
    }
  }
  while (item < path.item_count) {
    take();
    sums.end(row++, rows, output);
  }
  sums.template finish<BLOCK, STRIDE>(tile, column_tile, row, items, carry, rows, output, scratch);
}
