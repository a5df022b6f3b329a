#pragma once
// DIA. A warp has a slice of rows, in which a thread has those 32 apart, so that a warp's loads
// of x and stores of y are of neighbours. A diagonal's values lie slice by slice, thread by
// thread, so that each thread takes its own by vector loads. NaN marks the slots without an entry
// and those past the last row.
constexpr u32 SLICE = 32 * ROWS;
const u32 thread = block * BLOCK + threadIdx.x;
const u32 first = thread / 32 * SLICE + thread % 32;
if (first >= row_count) return;
const size_t stride = (size_t(row_count) + SLICE - 1) / SLICE * SLICE;
u32 row[ROWS];
Scalar sum[ROWS] = {};
#pragma unroll
for (u32 r = 0; r < ROWS; ++r) {
  const u32 position = first + r * 32;
  const u32 known = position < row_count ? position : first;
  row[r] = ROW(known);
}
for (u32 d = 0; d < diagonal_count; d += UNROLL) {
  const u32 left = diagonal_count - d;
  Scalar value[UNROLL][ROWS], factor[UNROLL][ROWS];
  // Loads past the end repeat the batch's first diagonal, and slots outside of the matrix load
  // the first x. No load waits for a branch or for a value.
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
    const u32 diagonal = u < left ? d + u : d;
    const size_t slot = diagonal * stride + size_t(thread) * ROWS;
    VALUES_AT(slot, value[u]);
    const u32 offset = __ldg(diagonals + diagonal);
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r) {
      const u32 column = row[r] + offset;
      factor[u][r] = x[column < column_count ? column : 0];
    }
  }
#pragma unroll
  for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r) {
      multiply_add(sum[r], u < left && value[u][r] == value[u][r], value[u][r], factor[u][r]);
    }
  }
}
#pragma unroll
for (u32 r = 0; r < ROWS; ++r) {
  if (first + r * 32 < row_count) {
    STORE_ROW(row[r], sum[r]);
  }
}
