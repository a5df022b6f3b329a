#pragma once
#include "types.cuh"

// The products of a tile's entries, in shared memory. One slot in 33 stays empty, so that threads
// which each read a run of slots meet no bank conflicts.
struct Products {
  Scalar* slots;
  __device__ __forceinline__ Scalar& at(u32 k) const { return slots[k + k / 32]; }
};

// Stages the products of `count` entries from `first` by coalesced loads.
template <u32 ITEMS, typename Part, typename Offset, typename In>
__device__ __forceinline__ void stage(Products products, Part part, Offset first, u32 count,
                                      In input) {
  if (threadIdx.x < count) {
    Scalar value[ITEMS];
    u32 column[ITEMS];
    bool live[ITEMS];
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const size_t entry = size_t(first) + threadIdx.x + j * BLOCK;
      live[j] = j == 0 || threadIdx.x + j * BLOCK < count;
      column[j] = part.column(entry, live[j]);
      value[j] = part.value(entry, live[j]);
    }
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) value[j] *= operand_if(live[j], input, column[j]);
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      if (live[j]) products.at(threadIdx.x + j * BLOCK) = value[j];
    }
  }
  __syncthreads();
}
