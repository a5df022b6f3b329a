#pragma once
#include "columns.cuh"
#include "merge.cuh"
#include "reduce.cuh"
#include "values.cuh"

// The products of a tile's entries, staged in shared memory by coalesced loads.
template <int BLOCK, int ITEMS, typename T, typename Span, typename Columns, typename Values,
          typename In>
__device__ __forceinline__ void stage_products(const Span& span, u32 tile, Columns columns,
                                               Values values, In input, T* products) {
  const auto unit = columns.of(tile);
  const u32 count = u32(span.end - span.first);
  if (threadIdx.x < count) {
    T value[ITEMS];
    u32 column[ITEMS];
    // Loads past the end repeat the thread's first entry instead of branching.
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      const auto entry = span.first + (k < count ? k : threadIdx.x);
      value[j] = values.at(entry);
      column[j] = unit.at(entry);
    }
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) value[j] *= input.at(column[j]).at[0];
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      if (k < count) products[k] = value[j];
    }
  }
  __syncthreads();
}

// One tile per block; LANES threads add up each row's products.
template <int BLOCK, int ITEMS, int LANES, typename T, typename Tiles, typename Rows,
          typename Columns, typename Values, typename In, typename Out, int SCRATCH>
__device__ __forceinline__ void merge_rows(u32 tile, u32 tile_count, Tiles tiles, Rows rows,
                                           Columns columns, Values values, In input, Out output,
                                           unsigned char (&scratch)[SCRATCH]) {
  static_assert(SCRATCH >= BLOCK * ITEMS * sizeof(T), "a product per item");
  T* products = reinterpret_cast<T*>(scratch);
  const auto span = tiles.span(tile);
  stage_products<BLOCK, ITEMS>(span, tile, columns, values, input, products);

  const u32 lane = threadIdx.x % LANES;
  // Every lane of a warp goes around equally often: the shuffles need them all.
  for (u32 base = span.first_row; base <= span.last_row; base += BLOCK / LANES) {
    const u32 position = base + threadIdx.x / LANES;
    const bool ends = position < span.last_row;
    auto begin = span.first, end = span.first;
    if (position <= span.last_row && position < tiles.row_count) {
      const auto row_begin = __ldg(tiles.offsets + position);
      begin = row_begin > span.first ? row_begin : span.first;
      end = ends ? __ldg(tiles.offsets + position + 1) : span.end;
    }
    auto sum = zero_pack<T, 1>();
    for (auto i = begin + lane; i < end; i += LANES) sum.at[0] += products[i - span.first];
    reduce_lanes<LANES, 1>(sum);
    // A row that ends here may be empty; one that goes on has entries here or begins elsewhere.
    if (lane == 0 && (ends || begin < end)) {
      tiles.template finish<1>(tile, 0, tile_count, span.first, position, ends, sum, rows, output);
    }
  }
}

// One tile per block; each thread walks ITEMS merged items and a segmented scan over the block
// joins the rows that several threads share.
template <int BLOCK, int ITEMS, typename T, typename Tiles, typename Rows, typename Columns,
          typename Values, typename In, typename Out, int SCRATCH>
__device__ __forceinline__ void merge_scan(u32 tile, u32 tile_count, Tiles tiles, Rows rows,
                                           Columns columns, Values values, In input, Out output,
                                           unsigned char (&scratch)[SCRATCH]) {
  static_assert(SCRATCH >= BLOCK * ITEMS * sizeof(T), "a product per item");
  T* products = reinterpret_cast<T*>(scratch);
  const auto span = tiles.span(tile);
  stage_products<BLOCK, ITEMS>(span, tile, columns, values, input, products);

  // Merge-path search: how many of this tile's rows end before this thread's first item.
  const u32 rows_here = span.last_row - span.first_row;
  const u32 entries_here = u32(span.end - span.first);
  const u32 item_count = rows_here + entries_here;
  u32 item = threadIdx.x * ITEMS;
  item = item < item_count ? item : item_count;
  const u32 last_item = item + ITEMS < item_count ? item + ITEMS : item_count;
  u32 low = item > entries_here ? item - entries_here : 0;
  u32 high = item < rows_here ? item : rows_here;
  while (low < high) {
    const u32 middle = (low + high) / 2;
    const u32 row_end = u32(__ldg(tiles.offsets + span.first_row + middle + 1) - span.first);
    if (row_end + middle < item) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  u32 row = low, entry = item - low;

  // The first row that ends in this thread waits for the sums of the threads before it.
  auto sum = zero_pack<T, 1>();
  auto first_sum = zero_pack<T, 1>();
  u32 first_ended = 0;
  bool any_ended = false;
  u32 row_end = row < rows_here ? u32(__ldg(tiles.offsets + span.first_row + row + 1) - span.first)
                                : 0xffffffffu;
  for (; item < last_item; ++item) {
    if (row < rows_here && entry == row_end) {
      if (any_ended) {
        tiles.template finish<1>(tile, 0, tile_count, span.first, span.first_row + row, true, sum,
                                 rows, output);
      } else {
        any_ended = true;
        first_ended = row;
        first_sum = sum;
      }
      sum = zero_pack<T, 1>();
      ++row;
      if (row < rows_here) {
        row_end = u32(__ldg(tiles.offsets + span.first_row + row + 1) - span.first);
      }
    } else {
      sum.at[0] += products[entry++];
    }
  }

  // Inclusive segmented scan of what each thread leaves for the next; a row end cuts it.
  T left = sum.at[0];
  bool cut = any_ended;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (u32 offset = 1; offset < 32; offset *= 2) {
    const T before = __shfl_up_sync(FULL_WARP, left, offset);
    const bool cut_before = __shfl_up_sync(FULL_WARP, cut, offset);
    if (lane >= offset) {
      if (!cut) left += before;
      cut |= cut_before;
    }
  }
  __shared__ T warp_left[BLOCK / 32];
  __shared__ bool warp_cut[BLOCK / 32];
  if (lane == 31) {
    warp_left[warp] = left;
    warp_cut[warp] = cut;
  }
  __syncthreads();
  T carried = T(0);
  for (u32 w = 0; w < warp; ++w) carried = warp_cut[w] ? warp_left[w] : carried + warp_left[w];

  T before = __shfl_up_sync(FULL_WARP, left, 1);
  bool cut_before = __shfl_up_sync(FULL_WARP, cut, 1);
  if (lane == 0) {
    before = T(0);
    cut_before = false;
  }
  if (any_ended) {
    first_sum.at[0] += cut_before ? before : carried + before;
    tiles.template finish<1>(tile, 0, tile_count, span.first, span.first_row + first_ended, true,
                             first_sum, rows, output);
  }
  // The last thread holds what the row after the last row end has gathered in this tile.
  if (threadIdx.x == BLOCK - 1 && span.last_row < tiles.row_count) {
    const auto row_begin = __ldg(tiles.offsets + span.last_row);
    if ((row_begin > span.first ? row_begin : span.first) < span.end) {
      auto rest = zero_pack<T, 1>();
      rest.at[0] = cut ? left : carried + left;
      tiles.template finish<1>(tile, 0, tile_count, span.first, span.last_row, false, rest, rows,
                               output);
    }
  }
}
