// SpMM, C = alpha * A * B + beta * C, with row-major B and C of 32 columns, in f32.
//
// Made for one matrix of 256 rows, 256 columns and 1504 entries, packed as this program says:
//
//   sparserl 1
//   spmm 32 f32
//   block 256
//   keep merge 64 u16 constant cached 4 1
//
// Launch: sparserl_spmm<<<1, 256>>>(arguments), no dynamic shared memory.
// Arguments, in order (pointers are to device memory):
//
//   B             8192 x f32, the dense input
//   C             8192 x f32, the dense output; not read when beta is 0
//   alpha         f32, by value
//   beta          f32, by value
//   p0_tile_rows  29 x u32
//   p0_offsets    257 x u32
//   p0_columns    1504 x u16
//   p0_values     1 x f32
//   p0_carry      1792 x f32, workspace
//   p0_tickets    28 x u32, workspace
//
// Workspace is zero before the first launch; launches that share it must not overlap.
//
// Dense operands must be aligned to 16 bytes.

// ---- types.cuh

// Types and loads shared by every block. NVRTC has no <cstdint>.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "the packed arrays are laid out for LP64");

// How matrix arrays, which one product reads once, go through the caches.
enum class Cache { Cached, Streamed };

template <Cache CACHE, typename T>
__device__ __forceinline__ T load(const T* address) {
  if constexpr (CACHE == Cache::Streamed) {
    return __ldcs(address);
  } else {
    return __ldg(address);
  }
}

// V neighbouring columns of a dense operand, moved by one load or store.
template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> zero_pack() {
  Pack<T, V> pack;
#pragma unroll
  for (int v = 0; v < V; ++v) pack.at[v] = T(0);
  return pack;
}

// ---- dense.cuh

// The dense operands, row-major with COLUMNS columns (1 for SpMV). A thread handles V columns
// from `column`; threads past the last column load zeros and store nothing.

template <typename T, int COLUMNS, int V>
struct Input {
  const T* __restrict__ data;
  u32 column;

  __device__ __forceinline__ Pack<T, V> at(u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return zero_pack<T, V>();
    return *reinterpret_cast<const Pack<T, V>*>(data + u64(row) * COLUMNS + column);
  }
};

// sum += a * x where `live`. A dead lane's x may be anything, also infinite.
template <typename T, int V>
__device__ __forceinline__ void multiply_add(Pack<T, V>& sum, bool live, T a, const Pack<T, V>& x) {
#pragma unroll
  for (int v = 0; v < V; ++v) sum.at[v] = live ? fma(a, x.at[v], sum.at[v]) : sum.at[v];
}

template <typename T, int COLUMNS, int V>
struct Output {
  T* __restrict__ data;
  u32 column;
  T alpha;
  T beta;

  // output row = alpha * sum + beta * output row; the old row is not read when beta is 0.
  __device__ __forceinline__ void store(u32 row, const Pack<T, V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Pack<T, V>*>(data + u64(row) * COLUMNS + column);
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != T(0)) {
      const auto old = *target;
#pragma unroll
      for (int v = 0; v < V; ++v) result.at[v] = fma(beta, old.at[v], result.at[v]);
    }
    *target = result;
  }
};

// ---- rows.cuh

// The matrix row at each position of a part.

struct RowRange {
  u32 first;
  __device__ __forceinline__ u32 at(u32 position) const { return first + position; }
};

struct RowList {
  const u32* __restrict__ rows;
  __device__ __forceinline__ u32 at(u32 position) const { return __ldg(rows + position); }
};

// ---- merge.cuh

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

// ---- columns.cuh

// Columns of a part's entries. A unit (row, slice, block row or tile) shares one base;
// `of(unit)` reads it once, `at(i)` gives the column of entry i.

template <typename Index, Cache CACHE>
struct AbsoluteColumns {
  const Index* __restrict__ index;

  struct Unit {
    const Index* __restrict__ index;
    template <typename Offset>
    __device__ __forceinline__ u32 at(Offset i) const {
      return load<CACHE>(index + i);
    }
  };
  __device__ __forceinline__ Unit of(u32) const { return {index}; }
};

template <typename Index, Cache CACHE>
struct RelativeColumns {
  const Index* __restrict__ distance;
  const u32* __restrict__ bases;

  struct Unit {
    const Index* __restrict__ distance;
    u32 base;
    template <typename Offset>
    __device__ __forceinline__ u32 at(Offset i) const {
      return base + load<CACHE>(distance + i);
    }
  };
  __device__ __forceinline__ Unit of(u32 unit) const { return {distance, __ldg(bases + unit)}; }
};

// ---- values.cuh

// Values of a part's entries. Padded layouts mark the slots that hold no entry with NaN.

template <typename T, Cache CACHE>
struct PlainValues {
  const T* __restrict__ value;
  template <typename Offset>
  __device__ __forceinline__ T at(Offset i) const {
    return load<CACHE>(value + i);
  }
};

template <typename T>
struct ConstantValue {
  const T* __restrict__ value;
  template <typename Offset>
  __device__ __forceinline__ T at(Offset) const {
    return __ldg(value);
  }
};

template <typename T, Cache CACHE>
struct DictionaryValues {
  const u8* __restrict__ code;
  const T* __restrict__ table;
  template <typename Offset>
  __device__ __forceinline__ T at(Offset i) const {
    return __ldg(table + load<CACHE>(code + i));
  }
};

// ---- walk.cuh

// Adds up entries i, i + STEP, ... before `end`, with UNROLL of them in flight. Loads past the end
// repeat the batch's first entry instead of branching: a branch between two loads would make the
// second wait for the first.
template <int STEP, int UNROLL, typename T, int V, typename Offset, typename Unit, typename Values,
          typename In>
__device__ __forceinline__ void walk(Pack<T, V>& sum, Offset i, Offset end, const Unit& unit,
                                     Values values, In input) {
  while (i < end) {
    const Offset left = end - i;
    T value[UNROLL];
    u32 column[UNROLL];
    Pack<T, V> x[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const Offset entry = u * STEP < left ? i + u * STEP : i;
      value[u] = values.at(entry);
      column[u] = unit.at(entry);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) x[u] = input.at(column[u]);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) multiply_add(sum, u * STEP < left, value[u], x[u]);
    if (left <= UNROLL * STEP) break;
    i += UNROLL * STEP;
  }
}

// ---- merge_spmm.cuh

// One tile for each group of STRIDE threads, which hold neighbouring columns and walk the tile's
// entries one after the other.
template <int BLOCK, int STRIDE, typename T, int V, typename Tiles, typename Rows, typename Columns,
          typename Values, typename In, typename Out>
__device__ __forceinline__ void merge_columns(u32 block, u32 column_tile, u32 tile_count,
                                              Tiles tiles, Rows rows, Columns columns,
                                              Values values, In input, Out output) {
  const u32 tile = (block * BLOCK + threadIdx.x) / STRIDE;
  if (tile >= tile_count) return;
  const auto span = tiles.span(tile);
  const auto unit = columns.of(tile);
  auto i = span.first;
  for (u32 position = span.first_row; position <= span.last_row; ++position) {
    const bool ends = position < span.last_row;
    const auto begin = i;
    const auto end = ends ? __ldg(tiles.offsets + position + 1) : span.end;
    auto sum = zero_pack<T, V>();
    walk<1, 4>(sum, begin, end, unit, values, input);
    i = end;
    if (ends || begin < end) {
      tiles.template finish<STRIDE>(tile, column_tile, tile_count, span.first, position, ends, sum,
                                    rows, output);
    }
  }
}

// ---- the kernel

extern "C" __global__ void __launch_bounds__(256, 1)
sparserl_spmm(
    const float* __restrict__ B,
    float* __restrict__ C,
    const float alpha,
    const float beta,
    const u32* __restrict__ p0_tile_rows,
    const u32* __restrict__ p0_offsets,
    const u16* __restrict__ p0_columns,
    const float* __restrict__ p0_values,
    float* p0_carry,
    u32* p0_tickets) {
  static_assert(256 % 32 == 0, "whole warps");
  // Part 0: 256 rows with 1504 entries.
  const u32 block = blockIdx.x, column_tile = 0;
  const u32 column = (column_tile * 8 + threadIdx.x % 8) * 4;
  merge_columns<256, 8, float, 4>(
      block,
      column_tile,
      28u,
      MergeTiles<float, u32, 32, 4>{256u, 64u, p0_tile_rows, p0_offsets, p0_carry, p0_tickets},
      RowRange{0u},
      AbsoluteColumns<u16, Cache::Cached>{p0_columns},
      ConstantValue<float>{p0_values},
      Input<float, 32, 4>{B, column},
      Output<float, 32, 4>{C, column, alpha, beta});
}
