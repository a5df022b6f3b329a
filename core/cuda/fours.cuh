#pragma once
#if UNROLL == 1
for (; four < end; four += LANES) {
#if MATRICES
  Scalar value[4];
  Sum factor[4];
#else
  Scalar value[4], factor[4];
#endif
  u32 column[4];
  const size_t slot = size_t(four) * 4;
  COLUMNS_AT(slot, column);
  VALUES_AT(slot, value);
#pragma unroll
  for (u32 j = 0; j < 4; ++j) factor[j] = OPERAND(true, column[j]);
#pragma unroll
  for (u32 j = 0; j < 4; ++j) {
    MULTIPLY_ADD_IF(four * 4 + j < entries_end, sum, value[j], factor[j]);
  }
}
#else
// UNROLL fours at a time. Loads past the end repeat the first four instead of branching.
for (; four < end; four += UNROLL * LANES) {
#if MATRICES
  Scalar value[UNROLL][4];
  Sum factor[UNROLL][4];
#else
  Scalar value[UNROLL][4], factor[UNROLL][4];
#endif
  u32 column[UNROLL][4];
  bool live[UNROLL];
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
    live[u] = u == 0 || u * LANES < end - four;
    const size_t slot = size_t(live[u] ? four + u * LANES : four) * 4;
    COLUMNS_AT(slot, column[u]);
    VALUES_AT(slot, value[u]);
  }
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
    for (u32 j = 0; j < 4; ++j) factor[u][j] = OPERAND(live[u], column[u][j]);
  }
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const bool is_entry = (four + u * LANES) * 4 + j < entries_end;
      MULTIPLY_ADD_IF(is_entry, sum, value[u][j], factor[u][j]);
    }
  }
}
#endif
