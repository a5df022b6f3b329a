#pragma once
#include "dense.cuh"
#include "rows.cuh"
#include "types.cuh"

// Merge-path tiles (Merrill and Garland, PPoPP 2016): the row ends and the entries of a part,
// merged, are cut into tiles of equally many items, so a long row or a run of empty rows costs
// what it holds. Tile t starts at row tile_rows[t] and entry t * items - tile_rows[t].
//
// A row cut by tile borders is completed in the same launch: each of its tiles leaves a partial
// sum in `carry`, and the tile that takes the last ticket adds them up, in tile order, and puts
// the ticket counter back to 0. Sums do not depend on timing. Launches that share carry and
// tickets must not overlap.
template <typename T, typename Offset, int COLUMNS, int V>
struct MergeTiles {
  u32 row_count;
  u32 items;
  const u32* __restrict__ tile_rows;
  const Offset* __restrict__ offsets;
  T* carry;      // tile_count x 2 x COLUMNS: sums of a row begun earlier, of a row that goes on
  u32* tickets;  // column tiles x tile_count

  // Where a tile's walk begins and ends.
  struct Span {
    u32 first_row, last_row;  // rows first_row .. last_row - 1 end here; last_row may begin here
    Offset first, end;        // entries
  };
  __device__ __forceinline__ Span span(u32 tile) const {
    const u32 first_row = __ldg(tile_rows + tile), last_row = __ldg(tile_rows + tile + 1);
    const Offset total = __ldg(offsets + row_count);
    const Offset first = Offset(tile) * items - first_row;
    const Offset next = Offset(tile + 1) * items - last_row;
    return {first_row, last_row, first, next < total ? next : total};
  }

  // Stores a row that lies in one tile, or leaves its part and completes it if it is the last.
  // The STRIDE neighbouring threads that hold the row's columns call this together.
  template <int STRIDE, typename Rows, typename Out>
  __device__ __forceinline__ void finish(u32 tile, u32 column_tile, u32 tile_count, Offset first,
                                         u32 position, bool ends, const Pack<T, V>& sum, Rows rows,
                                         Out output) const {
    const Offset row_begin = __ldg(offsets + position);
    const bool begins = row_begin >= first;
    if (begins && ends) {
      output.store(rows.at(position), sum);
      return;
    }
    const u32 first_tile = u32((row_begin + position) / items);
    const u32 last_tile = u32((__ldg(offsets + position + 1) + position) / items);
    if (output.column < COLUMNS) partial(tile, begins, output.column) = sum;
    __threadfence();
    const u32 leader = threadIdx.x % 32 / STRIDE * STRIDE;
    const u32 group = (STRIDE == 32 ? 0xffffffffu : (1u << STRIDE % 32) - 1u) << leader;
    u32* ticket = tickets + u64(column_tile) * tile_count + first_tile;
    u32 arrived = 0;
    __syncwarp(group);
    if (threadIdx.x % STRIDE == 0) arrived = atomicAdd(ticket, 1u);
    arrived = __shfl_sync(group, arrived, leader);
    if (arrived != last_tile - first_tile) return;

    __threadfence();
    if (threadIdx.x % STRIDE == 0) *ticket = 0;
    if (output.column >= COLUMNS) return;
    auto total = fetch(first_tile, true, output.column);
    // A long row has many parts: their loads must not wait for each other.
#pragma unroll 8
    for (u32 other = first_tile + 1; other <= last_tile; ++other) {
      const auto part = fetch(other, false, output.column);
#pragma unroll
      for (int v = 0; v < V; ++v) total.at[v] += part.at[v];
    }
    output.store(rows.at(position), total);
  }

 private:
  __device__ __forceinline__ Pack<T, V>& partial(u32 tile, bool begins, u32 column) const {
    return *reinterpret_cast<Pack<T, V>*>(carry + (u64(tile) * 2 + begins) * COLUMNS + column);
  }

  // Reads past L1, which may hold what the slot held before.
  __device__ __forceinline__ Pack<T, V> fetch(u32 tile, bool begins, u32 column) const {
    const T* slot = partial(tile, begins, column).at;
    Pack<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = __ldcg(slot + v);
    return pack;
  }
};
