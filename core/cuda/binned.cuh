#pragma once
// Propagation blocking (Beamer, Asanovic and Patterson, IPDPS 2017). The first blocks multiply:
// each holds x of a panel of columns in shared memory, and leaves the products of a segment of
// the panel's entries where their bins of rows have them side by side. The others wait for all of
// these, and add: each holds the products of a bin, and where those of its rows are. Sums do not
// depend on timing.
//
// What a block does it draws, so that whoever is waited for has begun. The last to end puts the
// counters back to 0.
if (bin_count == 0) return;
__shared__ u32 turn;
if (threadIdx.x == 0) turn = atomicAdd(tickets, 1u);
__syncthreads();
auto* held = reinterpret_cast<Scalar*>(scratch);
if (turn < segment_count) {
  const u32* segment = segments + size_t(turn) * 3;
  const u32 first_column = __ldg(segment) * PANEL, fours_end = __ldg(segment + 2);
  const u32 held_columns = min(PANEL, column_count - first_column);
#pragma unroll 8
  for (u32 i = threadIdx.x; i < held_columns; i += BLOCK) {
    copy_operand(held + i, x + first_column + i);
  }
  wait_for_copies();
  __syncthreads();
  // UNROLL fours at a time. Loads past the end repeat the first four instead of branching.
  for (u32 four = __ldg(segment + 1) + threadIdx.x; four < fours_end; four += UNROLL * BLOCK) {
    Scalar value[UNROLL][4];
    u32 column[UNROLL][4], target[UNROLL];
    bool live[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      live[u] = u == 0 || u * BLOCK < fours_end - four;
      const u32 at = live[u] ? four + u * BLOCK : four;
      const size_t slot = size_t(at) * 4;
#if GROUP > 1
      target[u] = __ldg(targets + at / GROUP) * GROUP + at % GROUP;
#else
      target[u] = __ldg(targets + at);
#endif
      COLUMNS_AT(slot, column[u]);
      VALUES_AT(slot, value[u]);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      Four product;
#pragma unroll
      for (u32 j = 0; j < 4; ++j) product.of[j] = value[u][j] * held[column[u][j]];
      if (live[u]) reinterpret_cast<Four*>(products)[target[u]] = product;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    // Behind the barrier, so that it is a fence for what all threads have stored.
    __threadfence();
    atomicAdd(tickets + 1, 1u);
  }
  return;
}
const u32 bin = turn - segment_count;
const u32* of_bin = bins + size_t(bin) * 3;
const u32 bin_row = __ldg(of_bin), row_count = __ldg(of_bin + 3) - bin_row;
const u32 first_four = __ldg(of_bin + 1) * GROUP;
const u32 four_count = __ldg(of_bin + 4) * GROUP - first_four;
const u32 first_eight = __ldg(of_bin + 2), eight_count = __ldg(of_bin + 5) - first_eight;
constexpr u32 WORDS = sizeof(Four) / sizeof(uint4);
auto* held_words = reinterpret_cast<uint4*>(scratch);
auto* held_eights = held_words + four_count * WORDS;
const auto* eights = reinterpret_cast<const uint4*>(places) + first_eight;
for (u32 i = threadIdx.x; i < eight_count; i += BLOCK) copy_async(held_eights + i, eights + i);
// Some rows at a time, and where the next ones begin is asked for before these are added.
constexpr u32 AT_ONCE = 8, STEP = BLOCK / LANES;
const u16* row_starts = row_places + (size_t(bin_row) + bin);
u32 begin[AT_ONCE], end[AT_ONCE];
#pragma unroll
for (u32 u = 0; u < AT_ONCE; ++u) {
  const u32 at = u * STEP + threadIdx.x / LANES;
  begin[u] = at < row_count ? __ldg(row_starts + at) : 0;
  end[u] = at < row_count ? __ldg(row_starts + at + 1) : 0;
}
if (threadIdx.x == 0) {
  while (load_acquire(tickets + 1) < segment_count) {}
}
__syncthreads();
const auto* words = reinterpret_cast<const uint4*>(products) + size_t(first_four) * WORDS;
#pragma unroll 4
for (u32 i = threadIdx.x; i < four_count * WORDS; i += BLOCK) {
  copy_async(held_words + i, words + i);
}
wait_for_copies();
__syncthreads();
const auto* held_places = reinterpret_cast<const u16*>(held_eights);
#if LANES > 1
const u32 lane = threadIdx.x % LANES;
#endif
for (u32 batch = 0; batch < row_count; batch += AT_ONCE * STEP) {
  u32 first[AT_ONCE], last[AT_ONCE];
#pragma unroll
  for (u32 u = 0; u < AT_ONCE; ++u) {
    first[u] = begin[u], last[u] = end[u];
    const u32 next = batch + (AT_ONCE + u) * STEP + threadIdx.x / LANES;
    begin[u] = next < row_count ? __ldg(row_starts + next) : 0;
    end[u] = next < row_count ? __ldg(row_starts + next + 1) : 0;
  }
#pragma unroll
  for (u32 u = 0; u < AT_ONCE; ++u) {
    const u32 at = batch + u * STEP + threadIdx.x / LANES;
    Scalar sum{};
#if LANES > 1
    for (u32 i = first[u] + lane; i < last[u]; i += LANES) sum += held[held_places[i]];
    REDUCE_LANES(sum, LANES, 1);
    if (at < row_count && lane == 0) {
#else
    for (u32 i = first[u]; i < last[u]; ++i) sum += held[held_places[i]];
    if (at < row_count) {
#endif
      STORE(bin_row + at, sum);
    }
  }
}
__syncthreads();
if (threadIdx.x == 0) {
  __threadfence();
  if (atomicAdd(tickets + 2, 1u) + 1 == bin_count) {
    __threadfence();
    tickets[0] = tickets[1] = tickets[2] = 0;
  }
}
