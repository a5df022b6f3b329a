#pragma once
#include "types.cuh"

// Merge-path tiles (Merrill and Garland, PPoPP 2016): the row ends and the entries of a part,
// merged, are cut into tiles of equally many items, one for each block, so a long row or a run of
// empty rows costs what it holds.
//
// A row cut by tile borders is completed in the same launch: each of its tiles leaves a partial
// sum, and the tile that takes the last ticket adds them up, in tile order, and puts the ticket
// counter back to 0. Sums do not depend on timing. Launches that share sums and tickets must not
// overlap.
struct Carry {
  u32 tile_count;
  Scalar* sums;       // tile_count x 2 x columns: of a row begun earlier, of a row that begins here
  u32* tickets;  // column tiles x tile_count

  // Leaves what a tile has of a row that lies in tiles `first` to `last`, and completes the row if
  // this is the last to come. The STRIDE neighbouring threads that hold the row's columns call this
  // together.
  template <u32 STRIDE, typename Sum, typename Out>
  __device__ __forceinline__ void join(u32 tile, u32 column_tile, u32 first, u32 last, u32 row,
                                       const Sum& sum, Out output) const {
    if (column_of(output) < COLUMNS) *partial<Sum>(tile, tile == first, output) = sum;
    __threadfence();
    const u32 leader = threadIdx.x % 32 / STRIDE * STRIDE;
    const u32 group = (STRIDE == 32 ? FULL_WARP : (1u << STRIDE % 32) - 1u) << leader;
    u32* ticket = tickets + size_t(column_tile) * tile_count + first;
    u32 arrived = 0;
    __syncwarp(group);
    if (threadIdx.x % STRIDE == 0) arrived = atomicAdd(ticket, 1u);
    arrived = __shfl_sync(group, arrived, leader);
    if (arrived != last - first) return;

    __threadfence();
    // The ticket was the leader's; what it saw, the others see behind this.
    __syncwarp(group);
    if (threadIdx.x % STRIDE == 0) *ticket = 0;
    if (column_of(output) >= COLUMNS) return;
    auto total = load_from_l2(partial<Sum>(first, true, output));
    // A long row has many parts: loads past the last repeat it instead of branching, so that none
    // waits for another.
    constexpr u32 UNROLL = 8;
    for (u32 other = first + 1; other <= last; other += UNROLL) {
      Sum part[UNROLL];
#pragma unroll
      for (u32 u = 0; u < UNROLL; ++u) {
        part[u] = load_from_l2(partial<Sum>(min(other + u, last), false, output));
      }
#pragma unroll
      for (u32 u = 0; u < UNROLL; ++u) {
        if (other + u <= last) total += part[u];
      }
    }
    output.store(row, total);
  }

 private:
  template <typename Sum, typename Out>
  __device__ __forceinline__ Sum* partial(u32 tile, bool begins, Out output) const {
    const size_t slot = (size_t(tile) * 2 + begins) * COLUMNS + column_of(output);
    return reinterpret_cast<Sum*>(sums + slot);
  }
};
