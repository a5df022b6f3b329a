#pragma once
#include "columns.cuh"
#include "dense.cuh"
#include "reduce.cuh"
#include "rows.cuh"
#include "values.cuh"

// CSR with LANES neighbouring threads over a row's entries, times STRIDE threads over columns of
// the dense operands.
template <int BLOCK, int LANES, int STRIDE, int UNROLL, typename T, int V, typename Offset,
          typename Rows, typename Columns, typename Values, typename In, typename Out>
__device__ __forceinline__ void csr_lanes(u32 block, u32 row_count, Rows rows,
                                          const Offset* __restrict__ offsets, Columns columns,
                                          Values values, In input, Out output) {
  const u32 position = (block * BLOCK + threadIdx.x) / (LANES * STRIDE);
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  auto sum = zero_pack<T, V>();
  if (live) {
    const Offset end = __ldg(offsets + position + 1);
    const auto unit = columns.of(position);
#pragma unroll UNROLL
    for (Offset i = __ldg(offsets + position) + lane; i < end; i += LANES) {
      input.multiply_add(sum, values.at(i), unit.at(i));
    }
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}

// CSR with a whole block for each row.
template <int BLOCK, int STRIDE, int UNROLL, typename T, int V, typename Offset, typename Rows,
          typename Columns, typename Values, typename In, typename Out>
__device__ __forceinline__ void csr_block(u32 block, Rows rows, const Offset* __restrict__ offsets,
                                          Columns columns, Values values, In input, Out output,
                                          void* scratch) {
  const Offset end = __ldg(offsets + block + 1);
  const auto unit = columns.of(block);
  auto sum = zero_pack<T, V>();
#pragma unroll UNROLL
  for (Offset i = __ldg(offsets + block) + threadIdx.x / STRIDE; i < end; i += BLOCK / STRIDE) {
    input.multiply_add(sum, values.at(i), unit.at(i));
  }
  reduce_block<BLOCK, STRIDE>(sum, static_cast<Pack<T, V>*>(scratch));
  if (threadIdx.x < STRIDE) output.store(rows.at(block), sum);
}
