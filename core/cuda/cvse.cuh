#pragma once
// Column-vector sparse encoding (Chen et al., SC 2021): in a group of ROWS rows the entries of a
// column are side by side, so that its row of the input is loaded once for all of them. A group
// begins at a multiple of 4 vectors; the lowest two bits of its offset tell how many at its end
// are empty. NaN marks the slots without an entry.
#define Offset TYPE(group_offsets)
constexpr u32 THREADS = LANES * STRIDE;
const u32 group = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
#if LANES > 1
const u32 lane = threadIdx.x / STRIDE % LANES;
#define FIRST first + lane
#else
#define FIRST first
#endif
Sum sum[ROWS] = {};
if (group * ROWS < row_count) {
  const Offset offset = __ldg(group_offsets + group), end = __ldg(group_offsets + group + 1) / 4;
  BASE_OF(group);
#if FOURS
  // A thread takes four vectors at once, the empty ones, too. Loads past the end repeat the first
  // four instead of branching.
  const Offset first = offset / 4;
  for (Offset four = FIRST; four < end; four += FOURS * LANES) {
    Scalar value[FOURS][4 * ROWS];
    Sum factor[FOURS][4];
    u32 column[FOURS][4];
    bool live[FOURS];
#pragma unroll
    for (u32 u = 0; u < FOURS; ++u) {
      live[u] = u == 0 || u * LANES < end - four;
      const size_t vector = size_t(live[u] ? four + u * LANES : four) * 4;
      COLUMNS_AT(vector, column[u]);
      VALUES_AT(vector * ROWS, value[u]);
    }
#pragma unroll
    for (u32 u = 0; u < FOURS; ++u) {
#pragma unroll
      for (u32 j = 0; j < 4; ++j) factor[u][j] = OPERAND(live[u], column[u][j]);
    }
#pragma unroll
    for (u32 u = 0; u < FOURS; ++u) {
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
          const Scalar a = value[u][j * ROWS + r];
          multiply_add(sum[r], live[u] && a == a, a, factor[u][j]);
        }
      }
    }
  }
#else
  const Offset first = offset / 4 * 4, vectors_end = end * 4 - offset % 4;
  for (Offset i = FIRST; i < vectors_end; i += UNROLL * LANES) {
    Scalar value[UNROLL][ROWS];
    Sum factor[UNROLL];
    u32 column[UNROLL];
    bool live[UNROLL];
    // UNROLL vectors at a time: none waits for another. Loads past the end repeat the first.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      live[u] = u == 0 || u * LANES < vectors_end - i;
      const size_t vector = live[u] ? i + u * LANES : i;
      column[u] = COLUMN(vector, true);
      VALUES_AT(vector * ROWS, value[u]);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) factor[u] = OPERAND(live[u], column[u]);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 r = 0; r < ROWS; ++r) {
        const Scalar a = value[u][r];
        multiply_add(sum[r], live[u] && a == a, a, factor[u]);
      }
    }
  }
#endif
}
#pragma unroll
for (u32 r = 0; r < ROWS; ++r) {
#if LANES > 1
  REDUCE_LANES(sum[r], LANES, STRIDE);
#endif
  const u32 position = group * ROWS + r;
#if LANES > 1
  if (lane == 0 && position < row_count) {
#else
  if (position < row_count) {
#endif
    STORE(position, sum[r]);
  }
}
