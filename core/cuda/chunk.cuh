#pragma once
#define Offset TYPE(chunk_offsets)
// Chunks of rows, each at most so many entries long: long rows are shared by several groups of
// neighbouring threads. Entries are stored by chunks, and a chunk begins at a multiple of 4 of
// them; the lowest two bits of its offset tell how many slots at its end are empty.
//
// Of a row that is cut into several chunks, each leaves its sum as its share of the row, and the
// one that takes the row's last ticket adds the shares up, in an order that does not depend on
// timing, and puts the ticket counter back to 0.
constexpr u32 THREADS = LANES * STRIDE, CUT = 1u << 31;
const u32 index = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
const u32 lane = threadIdx.x / STRIDE % LANES;
const bool is_chunk = index < chunk_count;
// Position of the row; or CUT and the number of the chunk's share.
u32 target = 0;
Sum sum{};
if (is_chunk) {
  const Offset offset = __ldg(chunk_offsets + index);
  const Offset end = __ldg(chunk_offsets + index + 1) / 4;
  target = __ldg(chunk_rows + index);
  BASE_OF(index);
  Offset four = offset / 4 + lane;
  const Offset entries_end = end * 4 - offset % 4;
  #include "fours.cuh"
}
reduce_lanes<LANES, STRIDE>(sum);
const bool is_cut = target >= CUT;
if (is_chunk && !is_cut && lane == 0) output.store(ROW(target), sum);
if (!__any_sync(FULL_WARP, is_cut)) return;
// The whole warp goes on together, for the sums over lanes.
const u32 share = target - CUT;
const bool has_columns = column_of(output) < COLUMNS;
auto* sums = reinterpret_cast<Sum*>(shares + (has_columns ? column_of(output) : 0));
constexpr u32 SUMS_PER_SHARE = COLUMNS * sizeof(Scalar) / sizeof(Sum);
u32 first = 0, count = 0, row = 0;
if (is_cut) {
  first = __ldg(cuts + size_t(share) * 3);
  count = __ldg(cuts + size_t(share) * 3 + 1);
  row = __ldg(cuts + size_t(share) * 3 + 2);
  if (lane == 0 && has_columns) sums[size_t(share) * SUMS_PER_SHARE] = sum;
}
__threadfence();
__syncwarp();
#if COLUMN_TILES > 1
u32* ticket = tickets + size_t(first) * COLUMN_TILES + column_tile;
#else
u32* ticket = tickets + first;
#endif
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
    constexpr u32 AT_ONCE = 8;
    for (u32 other = lane; other < count; other += AT_ONCE * LANES) {
      Sum others[AT_ONCE];
#pragma unroll
      for (u32 u = 0; u < AT_ONCE; ++u) {
        const u32 from = first + (other + u * LANES < count ? other + u * LANES : other);
        others[u] = load_from_l2(sums + size_t(from) * SUMS_PER_SHARE);
      }
#pragma unroll
      for (u32 u = 0; u < AT_ONCE; ++u) {
        if (other + u * LANES < count) total += others[u];
      }
    }
  }
}
reduce_lanes<LANES, STRIDE>(total);
if (is_last && lane == 0) output.store(ROW(row), total);
