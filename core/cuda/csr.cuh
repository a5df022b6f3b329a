#pragma once
#include "types.cuh"

// CSR with neighbouring threads over a row's entries.
template <typename Part, typename Offset, typename In, typename Out>
__device__ __forceinline__ void csr_lanes(Part part, u32 block, u32 row_count,
                                          const Offset* row_offsets, In input, Out output) {
  constexpr u32 LANES = Part::lanes_per_row, STRIDE = Part::column_lanes, THREADS = LANES * STRIDE;
  const u32 position = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  typename Part::Sum sum{};
  if (position < row_count) {
    const Offset first = __ldg(row_offsets + position), end = __ldg(row_offsets + position + 1);
    walk<LANES>(sum, part.with_base_of(position), first + lane, end, input);
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (position < row_count && lane == 0) output.store(part.row(position), sum);
}

// CSR with a whole block for each row: threads that share threadIdx.x % STRIDE share columns, and
// leave the sums of their warps to the first warp.
template <typename Part, typename Offset, typename In, typename Out, u32 SCRATCH>
__device__ __forceinline__ void csr_block(Part part, u32 block, u32 row_count,
                                          const Offset* row_offsets, In input, Out output,
                                          unsigned char (&scratch)[SCRATCH]) {
  using Sum = typename Part::Sum;
  constexpr u32 STRIDE = Part::column_lanes, WARPS = BLOCK / 32;
  static_assert(SCRATCH >= WARPS * STRIDE * sizeof(Sum), "a sum per warp and column");
  // A launch has at least one block, also without rows.
  if (block >= row_count) return;
  const Offset first = __ldg(row_offsets + block), end = __ldg(row_offsets + block + 1);
  Sum sum{}, *sums = reinterpret_cast<Sum*>(scratch);
  walk<BLOCK / STRIDE>(sum, part.with_base_of(block), first + threadIdx.x / STRIDE, end, input);
  reduce_lanes<32 / STRIDE, STRIDE>(sum);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < STRIDE) sums[warp * STRIDE + lane] = sum;
  __syncthreads();
  if (threadIdx.x >= STRIDE) return;
  for (u32 other = 1; other < WARPS; ++other) sum += sums[other * STRIDE + lane];
  output.store(part.row(block), sum);
}
