#pragma once
#if UNROLL == 1
for (Offset i = FIRST; i < end; i += STEP) {
  const u32 column = COLUMN(i, true);
  const Scalar value = VALUE(i, true);
  const Sum factor = OPERAND(true, column);
  MULTIPLY_ADD(sum, value, factor);
  if (end - i <= STEP) break;
}
#else
// UNROLL entries at a time: none waits for another. Past the end, both factors are zero.
for (Offset i = FIRST; i < end; i += UNROLL * STEP) {
#if MATRICES
  Scalar value[UNROLL];
  Sum factor[UNROLL];
#else
  Scalar value[UNROLL], factor[UNROLL];
#endif
  u32 column[UNROLL];
  bool live[UNROLL];
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
    const size_t entry = size_t(i) + u * STEP;
    live[u] = u == 0 || u * STEP < end - i;
    column[u] = COLUMN(entry, live[u]);
    value[u] = VALUE(entry, live[u]);
  }
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) factor[u] = OPERAND(live[u], column[u]);
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) MULTIPLY_ADD(sum, value[u], factor[u]);
  if (end - i <= UNROLL * STEP) break;
}
#endif
