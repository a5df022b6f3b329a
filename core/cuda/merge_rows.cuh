#pragma once
#include "merge.cuh"
#include "products.cuh"

// Merge tiles by their row offsets: tile t begins at row tile_rows[t], and at the entry whose
// number and row add up to t * tile_items.
template <typename Offset>
struct MergeTiles {
  u32 row_count;
  Offset entry_count;
  const u32* __restrict__ tile_rows;
  const Offset* __restrict__ row_offsets;
};

// SpMV by merge tiles: neighbouring threads add up each row's products.
template <typename Part, typename Offset, typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void merge_rows(Part part, u32 tile, MergeTiles<Offset> tiles,
                                           Carry carry, In input, Out output,
                                           unsigned char (&scratch)[SCRATCH]) {
  constexpr u32 ITEMS = Part::items_per_thread, LANES = Part::lanes_per_row;
  constexpr u32 TILE = BLOCK * ITEMS;
  static_assert(SCRATCH >= TILE / 32 * 33 * sizeof(Scalar), "a product per item");
  // A launch has at least one block, also without rows.
  if (tile >= carry.tile_count) return;
  const Products products{reinterpret_cast<Scalar*>(scratch)};
  // Rows first_row .. last_row - 1 end here; last_row may begin here.
  const u32 first_row = __ldg(tiles.tile_rows + tile);
  const u32 last_row = __ldg(tiles.tile_rows + tile + 1);
  const Offset first = Offset(tile) * TILE - first_row;
  const Offset next = Offset(tile + 1) * TILE - last_row;
  const Offset tile_end = next < tiles.entry_count ? next : tiles.entry_count;

  // The first rows' offsets are on their way while the products are staged.
  u32 position = first_row + threadIdx.x / LANES;
  Offset row_begin = 0, row_end = 0;
  const auto load_offsets = [&] {
    if (position <= last_row && position < tiles.row_count) {
      row_begin = __ldg(tiles.row_offsets + position);
      row_end = __ldg(tiles.row_offsets + position + 1);
    }
  };
  load_offsets();
  part.with_base_of(tile);
  stage<ITEMS>(products, part, first, u32(tile_end - first), input);

  const u32 lane = threadIdx.x % LANES;
  // Every lane of a warp goes around equally often: the shuffles need them all.
  for (u32 base = first_row; base <= last_row; base += BLOCK / LANES) {
    const bool live = position <= last_row && position < tiles.row_count;
    const bool ends = position < last_row;
    const auto begin = live && row_begin > first ? row_begin : first;
    const auto end = live ? (ends ? row_end : tile_end) : first;
    Scalar sum = 0;
    for (auto i = begin + lane; i < end; i += LANES) sum += products.at(u32(i - first));
    reduce_lanes<LANES, 1>(sum);
    // A row that ends here may be empty; one that goes on has entries here or begins elsewhere.
    if (lane == 0 && (ends || begin < end)) {
      if (ends && row_begin >= first) {
        output.store(part.row(position), sum);
      } else {
        carry.template join<1>(tile, 0, u32((row_begin + position) / TILE),
                               u32((row_end + position) / TILE), part.row(position), sum, output);
      }
    }
    position += BLOCK / LANES;
    load_offsets();
  }
}
