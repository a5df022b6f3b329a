#pragma once
#include "merge.cuh"
#include "products.cuh"
#include "reduce.cuh"

// Merge tiles by their row offsets. Tile t starts at row tile_rows[t] and entry
// t * items - tile_rows[t].
template <typename Offset>
struct MergeTiles {
  u32 row_count;
  Offset entry_count;
  u32 items;
  const u32* __restrict__ tile_rows;
  const Offset* __restrict__ offsets;
};

// SpMV: LANES threads add up each row's products.
template <int BLOCK, int ITEMS, int LANES, typename T, typename Offset, typename Carry,
          typename Rows, typename Columns, typename Values, typename In, typename Out, int SCRATCH>
__device__ __forceinline__ void merge_rows(u32 tile, MergeTiles<Offset> tiles, Carry carry,
                                           Rows rows, Columns columns, Values values, In input,
                                           Out output, unsigned char (&scratch)[SCRATCH]) {
  static_assert(SCRATCH >= BLOCK * ITEMS / 32 * 33 * sizeof(T), "a product per item");
  const Products<T> products{reinterpret_cast<T*>(scratch)};
  // Rows first_row .. last_row - 1 end here; last_row may begin here.
  const u32 first_row = __ldg(tiles.tile_rows + tile);
  const u32 last_row = __ldg(tiles.tile_rows + tile + 1);
  const Offset first = Offset(tile) * tiles.items - first_row;
  const Offset next = Offset(tile + 1) * tiles.items - last_row;
  const Offset tile_end = next < tiles.entry_count ? next : tiles.entry_count;

  // The first rows' offsets are on their way while the products are staged.
  u32 position = first_row + threadIdx.x / LANES;
  Offset row_begin = 0, row_end = 0;
  const auto fetch = [&] {
    if (position <= last_row && position < tiles.row_count) {
      row_begin = __ldg(tiles.offsets + position);
      row_end = __ldg(tiles.offsets + position + 1);
    }
  };
  fetch();
  stage<BLOCK, ITEMS>(products, first, u32(tile_end - first), columns.of(tile), values, input);

  const u32 lane = threadIdx.x % LANES;
  // Every lane of a warp goes around equally often: the shuffles need them all.
  for (u32 base = first_row; base <= last_row; base += BLOCK / LANES) {
    const bool live = position <= last_row && position < tiles.row_count;
    const bool ends = position < last_row;
    const auto begin = live && row_begin > first ? row_begin : first;
    const auto end = live ? (ends ? row_end : tile_end) : first;
    auto sum = zero_pack<T, 1>();
    for (auto i = begin + lane; i < end; i += LANES) sum.at[0] += products.at(u32(i - first));
    reduce_lanes<LANES, 1>(sum);
    // A row that ends here may be empty; one that goes on has entries here or begins elsewhere.
    if (lane == 0 && (ends || begin < end)) {
      if (ends && row_begin >= first) {
        output.store(rows.at(position), sum);
      } else {
        carry.template join<1>(tile, 0, u32((row_begin + position) / tiles.items),
                               u32((row_end + position) / tiles.items), rows.at(position), sum,
                               output);
      }
    }
    position += BLOCK / LANES;
    fetch();
  }
}
