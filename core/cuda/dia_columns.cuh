#pragma once
// DIA: a diagonal's values lie by position. Value p of diagonal d belongs to column
// row + diagonals[d]. NaN marks the slots without an entry, so nothing outside is touched.
const u32 position = block * (BLOCK / STRIDE) + threadIdx.x / STRIDE;
if (position >= row_count) return;
const u32 row = ROW(position);
const size_t stride = (size_t(row_count) + 31) / 32 * 32;
Sum sum{};
for (u32 d = 0; d < diagonal_count; d += UNROLL) {
  const u32 left = diagonal_count - d;
  Scalar value[UNROLL];
  u32 column[UNROLL];
  Sum factor[UNROLL];
  bool live[UNROLL];
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
    live[u] = u == 0 || u < left;
    const size_t slot = (d + u) * stride + position;
    value[u] = VALUE(slot, live[u]);
    column[u] = row + __ldg(diagonals + (live[u] ? d + u : d));
  }
  // Empty slots may be of columns outside.
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
    live[u] = live[u] && value[u] == value[u];
    factor[u] = OPERAND(live[u], column[u]);
  }
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) multiply_add(sum, live[u], value[u], factor[u]);
}
STORE_ROW(row, sum);
