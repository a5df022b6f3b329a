#pragma once
#include "merge_scan.cuh"

// SpMM: each group of STRIDE threads holds neighbouring columns and walks ITEMS items.
template <int BLOCK, int STRIDE, int ITEMS, typename T, int V, typename Offset, typename Carry,
          typename Rows, typename Columns, typename Values, typename In, typename Out, int SCRATCH>
__device__ __forceinline__ void merge_columns(u32 tile, u32 column_tile, MergeItems<Offset> items,
                                              Carry carry, Rows rows, Columns columns,
                                              Values values, In input, Out output,
                                              unsigned char (&scratch)[SCRATCH]) {
  static_assert(SCRATCH >= BLOCK / 32 * (STRIDE * sizeof(Pack<T, V>) + 4), "warp sums");
  constexpr int UNROLL = 8;
  const MergeWalk<BLOCK, STRIDE, ITEMS, Offset> walk(tile, items);
  const auto unit = columns.of(tile * (BLOCK / STRIDE) + threadIdx.x / STRIDE);
  RowSums<T, V> sums;
  u32 row = walk.row, item = 0, bits = walk.word(0);
  // Takes the next item; true for a row's end.
  const auto take = [&] {
    if (ITEMS > 32 && item > 0 && item % 32 == 0) bits = walk.word(item / 32);
    const bool is_end = bits & 1u;
    bits >>= 1;
    ++item;
    return is_end;
  };
  for (u32 done = 0; done < walk.entry_count; done += UNROLL) {
    const u32 left = walk.entry_count - done;
    T value[UNROLL];
    u32 column[UNROLL];
    Pack<T, V> x[UNROLL];
    // Loads past the end repeat the batch's first entry instead of branching.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const auto entry = walk.entry + done + (u < left ? u : 0);
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
  while (item < walk.item_count) {
    take();
    sums.end(row++, rows, output);
  }
  sums.template finish<BLOCK, STRIDE>(tile, column_tile, row, items, carry, rows, output, scratch);
}
