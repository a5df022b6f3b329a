#pragma once
#include "merge.cuh"
#include "products.cuh"

// Merge tiles by bits: one for each item of the merged list, 1 for a row's end and 0 for an entry.
// Each group of STRIDE neighbouring threads walks ITEMS items, whatever rows they belong to, and a
// segmented scan over the block joins the rows that several groups share.
template <typename Offset>
struct MergeItems {
  Offset item_count;
  const u32* __restrict__ row_ends;   // the bits, for whole tiles
  const u32* __restrict__ warp_rows;  // for each warp: rows that end before its first item
  const u32* __restrict__ borders;    // for each tile: first and last tile of the row that lies
                                      // across its beginning, or the tile itself, twice
};

// Where a group's walk begins.
template <u32 STRIDE, u32 ITEMS, typename Offset>
struct MergeWalk {
  static constexpr u32 GROUPS = BLOCK / STRIDE;
  const u32* __restrict__ words;  // the bits from the word of the group's first item on
  u32 row;                        // rows that end before that item
  Offset entry;                   // entries before it
  u32 item_count, entry_count;    // of the group

  __device__ __forceinline__ MergeWalk(u32 tile, const MergeItems<Offset>& items) {
    const size_t group = size_t(tile) * GROUPS + threadIdx.x / STRIDE;
    const Offset first = Offset(group) * ITEMS;
    const Offset left = first < items.item_count ? items.item_count - first : 0;
    item_count = left < ITEMS ? u32(left) : ITEMS;
    words = items.row_ends + group * ITEMS / 32;
    const u32 warp_row = __ldg(items.warp_rows + (size_t(tile) * BLOCK + threadIdx.x) / 32);
    u32 ended = 0;
#pragma unroll
    for (u32 w = 0; w < (ITEMS + 31) / 32; ++w) ended += __popc(word(w));
    u32 ended_up_to = ended;
#pragma unroll
    for (u32 offset = STRIDE; offset < 32; offset *= 2) {
      const u32 before = __shfl_up_sync(FULL_WARP, ended_up_to, offset);
      if (threadIdx.x % 32 >= offset) ended_up_to += before;
    }
    row = warp_row + ended_up_to - ended;
    entry = first - row;
    entry_count = item_count - ended;
  }

  // Bits of the group's items 32 * w to 32 * w + 31.
  __device__ __forceinline__ u32 word(u32 w) const {
    if constexpr (ITEMS >= 32) {
      return __ldg(words + w);
    } else {
      return __ldg(words) >> threadIdx.x / STRIDE * ITEMS % 32 & ((1u << ITEMS % 32) - 1u);
    }
  }
};

// What the groups of a block leave for each other: from what each has gathered since its last row
// end, if it met one (`cut`), what the groups before it have gathered of the row that is open at
// its beginning, and whether that row begins in this block. `scratch` holds a flag for each warp,
// and a sum for each of its columns.
template <u32 STRIDE, typename Sum>
struct OpenRow {
  Sum sum;
  bool begins_here;

  __device__ __forceinline__ OpenRow(Sum left, bool cut, unsigned char* scratch) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 offset = STRIDE; offset < 32; offset *= 2) {
      const Sum before = shuffle_up(left, offset);
      const bool cut_before = __shfl_up_sync(FULL_WARP, cut, offset);
      if (lane >= offset) {
        if (!cut) left += before;
        cut |= cut_before;
      }
    }
    auto* warp_sums = reinterpret_cast<Sum*>(scratch);
    auto* warp_cuts = reinterpret_cast<u32*>(warp_sums + BLOCK / 32 * STRIDE);
    if (lane + STRIDE >= 32) warp_sums[warp * STRIDE + lane % STRIDE] = left;
    if (lane == 31) warp_cuts[warp] = cut;
    __syncthreads();
    Sum carried{};
    bool any = false;
    for (u32 w = 0; w < warp; ++w) {
      if (warp_cuts[w] != 0) {
        carried = Sum{};
        any = true;
      }
      carried += warp_sums[w * STRIDE + lane % STRIDE];
    }
    sum = shuffle_up(left, STRIDE % 32);
    bool cut_before = __shfl_up_sync(FULL_WARP, cut, STRIDE % 32);
    if (lane < STRIDE) {
      sum = Sum{};
      cut_before = false;
    }
    if (!cut_before) sum += carried;
    begins_here = any || cut_before;
  }
};

// Sums of the rows that a group meets.
template <typename Sum>
struct RowSums {
  Sum sum{};        // of the open row
  Sum first_sum{};  // of the first row that ended, from the group's start
  u32 first_row = 0;
  bool cut = false;  // whether a row ended

  // Stores the row that ends here, or keeps it: the first one waits for the groups before.
  template <typename Part, typename Out>
  __device__ __forceinline__ void end(u32 row, Part part, Out output) {
    if (cut) {
      output.store(part.row(row), sum);
    } else {
      cut = true;
      first_row = row;
      first_sum = sum;
    }
    sum = Sum{};
  }

  // Completes the first row of each group, and leaves the block's last row to the next block.
  template <u32 STRIDE, typename Part, typename Offset, typename Out>
  __device__ __forceinline__ void finish(Part part, u32 tile, u32 column_tile, u32 row,
                                         const MergeItems<Offset>& items, Carry carry,
                                         Out output, unsigned char* scratch) {
    const u32* border = items.borders + size_t(tile) * 2;
    const u32 begun = __ldg(border), ending = __ldg(border + 1);
    const u32 next_begun = __ldg(border + 2), next_ending = __ldg(border + 3);
    const OpenRow<STRIDE, Sum> open(sum, cut, scratch);
    if (cut) {
      first_sum += open.sum;
      if (open.begins_here || begun == tile) {
        output.store(part.row(first_row), first_sum);
      } else {
        carry.template join<STRIDE>(tile, column_tile, begun, ending, part.row(first_row),
                                    first_sum, output);
      }
    } else {
      sum += open.sum;
    }
    if (threadIdx.x >= BLOCK - STRIDE && next_begun <= tile) {
      carry.template join<STRIDE>(tile, column_tile, next_begun, next_ending, part.row(row), sum,
                                  output);
    }
  }
};

// SpMV by merge tiles: the products are staged in shared memory, and each thread walks equally many
// items.
template <typename Part, typename Offset, typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void merge_scan(Part part, u32 tile, MergeItems<Offset> items,
                                           Carry carry, In input, Out output,
                                           unsigned char (&scratch)[SCRATCH]) {
  constexpr u32 ITEMS = Part::items_per_thread;
  constexpr u32 PRODUCT_BYTES = BLOCK * ITEMS / 32 * 33 * sizeof(Scalar);
  constexpr u32 WARP_BYTES = BLOCK / 32 * (sizeof(Scalar) + 4);
  static_assert(SCRATCH >= PRODUCT_BYTES + WARP_BYTES, "products and warp sums");
  // A launch has at least one block, also without rows.
  if (tile >= carry.tile_count) return;
  const Products products{reinterpret_cast<Scalar*>(scratch)};
  const u32 tile_row = __ldg(items.warp_rows + size_t(tile) * (BLOCK / 32));
  const u32 next_row = __ldg(items.warp_rows + size_t(tile + 1) * (BLOCK / 32));
  const Offset first_item = Offset(tile) * (BLOCK * ITEMS);
  const Offset left = items.item_count - first_item;
  const u32 item_count = left < BLOCK * ITEMS ? u32(left) : BLOCK * ITEMS;
  const u32 count = item_count - (next_row - tile_row);
  const Offset first = first_item - tile_row;
  const MergeWalk<1, ITEMS, Offset> path(tile, items);
  const u32 bits = path.word(0);
  part.with_base_of(tile);
  stage<ITEMS>(products, part, first, count, input);

  Scalar product[ITEMS];
#pragma unroll
  for (u32 j = 0; j < ITEMS; ++j) {
    const u32 k = u32(path.entry - first) + j - __popc(bits & ((1u << j) - 1u));
    product[j] = (bits >> j & 1u) == 0 && k < count ? products.at(k) : Scalar(0);
  }
  RowSums<Scalar> sums;
  u32 row = path.row;
#pragma unroll
  for (u32 j = 0; j < ITEMS; ++j) {
    sums.sum += product[j];
    if (bits >> j & 1u) sums.end(row++, part, output);
  }
  sums.template finish<1>(part, tile, 0, row, items, carry, output,
                                 scratch + PRODUCT_BYTES);
}
