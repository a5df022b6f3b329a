#pragma once
#include "reduce.cuh"
#include "rows.cuh"
#include "walk.cuh"

// CSR with LANES neighbouring threads over a row's entries, times STRIDE threads over columns of
// the dense operands.
template <int BLOCK, int LANES, int STRIDE, int UNROLL, typename T, int V, typename Offset,
          typename Rows, typename Columns, typename Values, typename In, typename Out>
__device__ __forceinline__ void csr_lanes(u32 block, u32 row_count, Rows rows,
                                          const Offset* __restrict__ offsets, Columns columns,
                                          Values values, In input, Out output) {
  const u32 position = place<BLOCK, LANES * STRIDE>(block);
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  auto sum = zero_pack<T, V>();
  if (live) {
    const Offset first = __ldg(offsets + position), end = __ldg(offsets + position + 1);
    walk<LANES, UNROLL>(sum, first + lane, end, columns.of(position), values, input);
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}

// CSR with a whole block for each row.
template <int BLOCK, int STRIDE, int UNROLL, typename T, int V, typename Offset, typename Rows,
          typename Columns, typename Values, typename In, typename Out, int SCRATCH>
__device__ __forceinline__ void csr_block(u32 block, Rows rows, const Offset* __restrict__ offsets,
                                          Columns columns, Values values, In input, Out output,
                                          unsigned char (&scratch)[SCRATCH]) {
  static_assert(SCRATCH >= BLOCK / 32 * STRIDE * sizeof(Pack<T, V>), "a pack per warp and column");
  const Offset first = __ldg(offsets + block), end = __ldg(offsets + block + 1);
  auto sum = zero_pack<T, V>();
  walk<BLOCK / STRIDE, UNROLL>(sum, first + threadIdx.x / STRIDE, end, columns.of(block), values,
                               input);
  reduce_block<BLOCK, STRIDE>(sum, reinterpret_cast<Pack<T, V>*>(scratch));
  if (threadIdx.x < STRIDE) output.store(rows.at(block), sum);
}
