#pragma once
#include "merge.cuh"
#include "walk.cuh"

// One tile for each group of STRIDE threads, which hold neighbouring columns and walk the tile's
// entries one after the other.
template <int BLOCK, int STRIDE, typename T, int V, typename Tiles, typename Rows, typename Columns,
          typename Values, typename In, typename Out>
__device__ __forceinline__ void merge_columns(u32 block, u32 column_tile, u32 tile_count,
                                              Tiles tiles, Rows rows, Columns columns,
                                              Values values, In input, Out output) {
  const u32 tile = place<BLOCK, STRIDE>(block);
  if (tile >= tile_count) return;
  const auto span = tiles.span(tile);
  const auto unit = columns.of(tile);
  auto i = span.first;
  for (u32 position = span.first_row; position <= span.last_row; ++position) {
    const bool ends = position < span.last_row;
    const auto begin = i;
    const auto end = ends ? __ldg(tiles.offsets + position + 1) : span.end;
    auto sum = zero_pack<T, V>();
    walk<1, 4>(sum, begin, end, unit, values, input);
    i = end;
    if (ends || begin < end) {
      tiles.template finish<STRIDE>(tile, column_tile, tile_count, span.first, position, ends, sum,
                                    rows, output);
    }
  }
}
