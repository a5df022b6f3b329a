#pragma once
#include "types.cuh"

// Rows that are cut into several chunks: each chunk leaves its sum as its share of the row, and the
// one that takes the row's last ticket adds the shares up, in an order that does not depend on
// timing, and puts the ticket counter back to 0. Launches that use the same shares and tickets must
// not overlap.
struct CutRows {
  const u32* cuts;  // shares x 3: the row's first share, how many it has, its position
  Scalar* sums;     // shares x columns
  u32* tickets;     // shares x column tiles
};

// Chunks of rows, each at most so many entries long: long rows are shared by several groups of
// LANES x STRIDE neighbouring threads, LANES over entries and STRIDE over columns. Entries are
// stored by chunks, and a chunk begins at a multiple of 4 of them; the lowest two bits of its
// offset tell how many slots at its end are empty.
template <typename Part, typename Offset, typename In, typename Out>
__device__ __forceinline__ void chunk(Part part, u32 block, u32 column_tile, u32 chunk_count,
                                      const Offset* chunk_offsets, const u32* chunk_rows,
                                      CutRows cut_rows, In input, Out output) {
  using Sum = typename Part::Sum;
  constexpr u32 LANES = Part::lanes_per_chunk, STRIDE = Part::column_lanes;
  constexpr u32 THREADS = LANES * STRIDE, TILES = Part::column_tiles, CUT = 1u << 31;
  const u32 index = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = index < chunk_count;
  // Position of the row; or CUT and the number of the chunk's share.
  u32 target = 0;
  Sum sum{};
  if (live) {
    const Offset offset = __ldg(chunk_offsets + index);
    const Offset end = __ldg(chunk_offsets + index + 1) / 4;
    target = __ldg(chunk_rows + index);
    walk_fours<LANES>(sum, part.with_base_of(index), offset / 4 + lane, end, end * 4 - offset % 4,
                      input);
  }
  reduce_lanes<LANES, STRIDE>(sum);
  const bool is_cut = target >= CUT;
  if (live && !is_cut && lane == 0) output.store(part.row(target), sum);
  if (!__any_sync(FULL_WARP, is_cut)) return;

  // The whole warp goes on together, for the sums over lanes.
  const u32 share = target - CUT;
  const bool has_columns = column_of(output) < COLUMNS;
  auto* sums = reinterpret_cast<Sum*>(cut_rows.sums + (has_columns ? column_of(output) : 0));
  constexpr u32 SUMS_PER_SHARE = COLUMNS * sizeof(Scalar) / sizeof(Sum);
  u32 first = 0, count = 0, row = 0;
  if (is_cut) {
    first = __ldg(cut_rows.cuts + size_t(share) * 3);
    count = __ldg(cut_rows.cuts + size_t(share) * 3 + 1);
    row = __ldg(cut_rows.cuts + size_t(share) * 3 + 2);
    if (lane == 0 && has_columns) sums[size_t(share) * SUMS_PER_SHARE] = sum;
  }
  __threadfence();
  __syncwarp();
  u32* ticket = cut_rows.tickets + size_t(first) * TILES + column_tile;
  const u32 leader = threadIdx.x % 32 / THREADS * THREADS;
  u32 arrived = 0;
  if (is_cut && threadIdx.x % THREADS == 0) arrived = atomicAdd(ticket, 1u);
  arrived = __shfl_sync(FULL_WARP, arrived, leader);
  const bool is_last = is_cut && arrived + 1 == count;
  if (!__any_sync(FULL_WARP, is_last)) return;

  __threadfence();
  // The ticket was the leader's; what it saw, the others see behind this.
  __syncwarp();
  Sum total{};
  if (is_last) {
    if (threadIdx.x % THREADS == 0) *ticket = 0;
    if (has_columns) {
      // Loads past the last repeat the batch's first instead of branching.
      constexpr u32 UNROLL = 8;
      for (u32 other = lane; other < count; other += UNROLL * LANES) {
        Sum others[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
          const u32 from = first + (other + u * LANES < count ? other + u * LANES : other);
          others[u] = load_from_l2(sums + size_t(from) * SUMS_PER_SHARE);
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
          if (other + u * LANES < count) total += others[u];
        }
      }
    }
  }
  reduce_lanes<LANES, STRIDE>(total);
  if (is_last && lane == 0) output.store(part.row(row), total);
}
