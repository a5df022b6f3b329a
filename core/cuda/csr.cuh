#pragma once
#include "reduce.cuh"
#include "rows.cuh"
#include "walk.cuh"

// CSR with neighbouring threads over a row's entries.
template <typename Mapping, typename Offset, typename Rows, typename Columns, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void csr_lanes(u32 block, u32 row_count, Rows rows,
                                          const Offset* __restrict__ row_offsets, Columns columns,
                                          Values values, In input, Out output) {
  constexpr u32 LANES = Mapping::lanes_per_row, STRIDE = Mapping::column_lanes;
  constexpr u32 THREADS = LANES * STRIDE;
  const u32 position = block * (Mapping::block_threads / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  typename In::Sum sum{};
  if (live) {
    const Offset first = __ldg(row_offsets + position), end = __ldg(row_offsets + position + 1);
    walk<LANES, Mapping::unroll>(sum, first + lane, end, columns.of(position), values, input);
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}

// CSR with a whole block for each row.
template <typename Mapping, typename Offset, typename Rows, typename Columns, typename Values,
          typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void csr_block(u32 block, u32 row_count, Rows rows,
                                          const Offset* __restrict__ row_offsets, Columns columns,
                                          Values values, In input, Out output,
                                          unsigned char (&scratch)[SCRATCH]) {
  using Sum = typename In::Sum;
  constexpr u32 BLOCK = Mapping::block_threads, STRIDE = Mapping::column_lanes;
  static_assert(SCRATCH >= BLOCK / 32 * STRIDE * sizeof(Sum), "a sum per warp and column");
  // A launch has at least one block, also without rows.
  if (block >= row_count) return;
  const Offset first = __ldg(row_offsets + block), end = __ldg(row_offsets + block + 1);
  Sum sum{};
  walk<BLOCK / STRIDE, Mapping::unroll>(sum, first + threadIdx.x / STRIDE, end, columns.of(block),
                                        values, input);
  reduce_block<BLOCK, STRIDE>(sum, reinterpret_cast<Sum*>(scratch));
  if (threadIdx.x < STRIDE) output.store(rows.at(block), sum);
}
