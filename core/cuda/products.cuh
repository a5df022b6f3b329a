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
    // Loads past the end repeat the thread's first entry instead of branching.
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      const auto entry = first + (k < count ? k : threadIdx.x);
      value[j] = part.value(entry);
      column[j] = part.column(entry);
    }
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) value[j] *= input[column[j]];
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      if (k < count) products.at(k) = value[j];
    }
  }
  __syncthreads();
}
