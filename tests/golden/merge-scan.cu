// SpMV, y = alpha * A * x + beta * y, in f32.
//
// Made for one matrix of 512 rows, 512 columns and 3182 entries, packed as this program says:
//
//   sparserl 1
//   spmv f32
//   block 128
//   keep merge 8 u16 plain cached 1 scan
//
// Launch: sparserl_spmv<<<4, 128>>>(arguments), no dynamic shared memory.
// Arguments, in order (pointers are to device memory):
//
//   x             512 x f32, the dense input
//   y             512 x f32, the dense output; not read when beta is 0
//   alpha         f32, by value
//   beta          f32, by value
//   p0_tile_rows  5 x u32
//   p0_offsets    513 x u32
//   p0_columns    3182 x u16
//   p0_values     3182 x f32
//   p0_carry      8 x f32, workspace
//   p0_tickets    4 x u32, workspace
//
// Workspace is zero before the first launch; launches that share it must not overlap.

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

// ---- reduce.cuh

constexpr u32 FULL_WARP = 0xffffffffu;

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <int LANES, int STRIDE, typename T, int V>
__device__ __forceinline__ void reduce_lanes(Pack<T, V>& sum) {
  static_assert(LANES * STRIDE <= 32, "a reduction stays within a warp");
#pragma unroll
  for (int offset = STRIDE; offset < LANES * STRIDE; offset *= 2) {
#pragma unroll
    for (int v = 0; v < V; ++v) sum.at[v] += __shfl_xor_sync(FULL_WARP, sum.at[v], offset);
  }
}

// Sums over the threads of a block that share threadIdx.x % STRIDE; the result is valid in the
// first STRIDE threads. `scratch` holds BLOCK / 32 * STRIDE packs.
template <int BLOCK, int STRIDE, typename T, int V>
__device__ __forceinline__ void reduce_block(Pack<T, V>& sum, Pack<T, V>* scratch) {
  reduce_lanes<32 / STRIDE, STRIDE>(sum);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < STRIDE) scratch[warp * STRIDE + lane] = sum;
  __syncthreads();
  if (threadIdx.x < STRIDE) {
    for (u32 other = 1; other < BLOCK / 32; ++other) {
#pragma unroll
      for (int v = 0; v < V; ++v) sum.at[v] += scratch[other * STRIDE + lane].at[v];
    }
  }
}

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

// ---- merge_spmv.cuh

// The products of a tile's entries, staged in shared memory by coalesced loads.
template <int BLOCK, int ITEMS, typename T, typename Span, typename Columns, typename Values,
          typename In>
__device__ __forceinline__ void stage_products(const Span& span, u32 tile, Columns columns,
                                               Values values, In input, T* products) {
  const auto unit = columns.of(tile);
  const u32 count = u32(span.end - span.first);
  if (threadIdx.x < count) {
    T value[ITEMS];
    u32 column[ITEMS];
    // Loads past the end repeat the thread's first entry instead of branching.
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      const auto entry = span.first + (k < count ? k : threadIdx.x);
      value[j] = values.at(entry);
      column[j] = unit.at(entry);
    }
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) value[j] *= input.at(column[j]).at[0];
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
      const u32 k = j * BLOCK + threadIdx.x;
      if (k < count) products[k] = value[j];
    }
  }
  __syncthreads();
}

// One tile per block; LANES threads add up each row's products.
template <int BLOCK, int ITEMS, int LANES, typename T, typename Tiles, typename Rows,
          typename Columns, typename Values, typename In, typename Out>
__device__ __forceinline__ void merge_rows(u32 tile, u32 tile_count, Tiles tiles, Rows rows,
                                           Columns columns, Values values, In input, Out output,
                                           void* scratch) {
  T* products = static_cast<T*>(scratch);
  const auto span = tiles.span(tile);
  stage_products<BLOCK, ITEMS>(span, tile, columns, values, input, products);

  const u32 lane = threadIdx.x % LANES;
  // Every lane of a warp goes around equally often: the shuffles need them all.
  for (u32 base = span.first_row; base <= span.last_row; base += BLOCK / LANES) {
    const u32 position = base + threadIdx.x / LANES;
    const bool ends = position < span.last_row;
    auto begin = span.first, end = span.first;
    if (position <= span.last_row && position < tiles.row_count) {
      const auto row_begin = __ldg(tiles.offsets + position);
      begin = row_begin > span.first ? row_begin : span.first;
      end = ends ? __ldg(tiles.offsets + position + 1) : span.end;
    }
    auto sum = zero_pack<T, 1>();
    for (auto i = begin + lane; i < end; i += LANES) sum.at[0] += products[i - span.first];
    reduce_lanes<LANES, 1>(sum);
    // A row that ends here may be empty; one that goes on has entries here or begins elsewhere.
    if (lane == 0 && (ends || begin < end)) {
      tiles.template finish<1>(tile, 0, tile_count, span.first, position, ends, sum, rows, output);
    }
  }
}

// One tile per block; each thread walks ITEMS merged items and a segmented scan over the block
// joins the rows that several threads share.
template <int BLOCK, int ITEMS, typename T, typename Tiles, typename Rows, typename Columns,
          typename Values, typename In, typename Out>
__device__ __forceinline__ void merge_scan(u32 tile, u32 tile_count, Tiles tiles, Rows rows,
                                           Columns columns, Values values, In input, Out output,
                                           void* scratch) {
  T* products = static_cast<T*>(scratch);
  const auto span = tiles.span(tile);
  stage_products<BLOCK, ITEMS>(span, tile, columns, values, input, products);

  // Merge-path search: how many of this tile's rows end before this thread's first item.
  const u32 rows_here = span.last_row - span.first_row;
  const u32 entries_here = u32(span.end - span.first);
  const u32 item_count = rows_here + entries_here;
  u32 item = threadIdx.x * ITEMS;
  item = item < item_count ? item : item_count;
  const u32 last_item = item + ITEMS < item_count ? item + ITEMS : item_count;
  u32 low = item > entries_here ? item - entries_here : 0;
  u32 high = item < rows_here ? item : rows_here;
  while (low < high) {
    const u32 middle = (low + high) / 2;
    const u32 row_end = u32(__ldg(tiles.offsets + span.first_row + middle + 1) - span.first);
    if (row_end + middle < item) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  u32 row = low, entry = item - low;

  // The first row that ends in this thread waits for the sums of the threads before it.
  auto sum = zero_pack<T, 1>();
  auto first_sum = zero_pack<T, 1>();
  u32 first_ended = 0;
  bool any_ended = false;
  u32 row_end = row < rows_here ? u32(__ldg(tiles.offsets + span.first_row + row + 1) - span.first)
                                : 0xffffffffu;
  for (; item < last_item; ++item) {
    if (row < rows_here && entry == row_end) {
      if (any_ended) {
        tiles.template finish<1>(tile, 0, tile_count, span.first, span.first_row + row, true, sum,
                                 rows, output);
      } else {
        any_ended = true;
        first_ended = row;
        first_sum = sum;
      }
      sum = zero_pack<T, 1>();
      ++row;
      if (row < rows_here) {
        row_end = u32(__ldg(tiles.offsets + span.first_row + row + 1) - span.first);
      }
    } else {
      sum.at[0] += products[entry++];
    }
  }

  // Inclusive segmented scan of what each thread leaves for the next; a row end cuts it.
  T left = sum.at[0];
  bool cut = any_ended;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (u32 offset = 1; offset < 32; offset *= 2) {
    const T before = __shfl_up_sync(FULL_WARP, left, offset);
    const bool cut_before = __shfl_up_sync(FULL_WARP, cut, offset);
    if (lane >= offset) {
      if (!cut) left += before;
      cut |= cut_before;
    }
  }
  __shared__ T warp_left[BLOCK / 32];
  __shared__ bool warp_cut[BLOCK / 32];
  if (lane == 31) {
    warp_left[warp] = left;
    warp_cut[warp] = cut;
  }
  __syncthreads();
  T carried = T(0);
  for (u32 w = 0; w < warp; ++w) carried = warp_cut[w] ? warp_left[w] : carried + warp_left[w];

  T before = __shfl_up_sync(FULL_WARP, left, 1);
  bool cut_before = __shfl_up_sync(FULL_WARP, cut, 1);
  if (lane == 0) {
    before = T(0);
    cut_before = false;
  }
  if (any_ended) {
    first_sum.at[0] += cut_before ? before : carried + before;
    tiles.template finish<1>(tile, 0, tile_count, span.first, span.first_row + first_ended, true,
                             first_sum, rows, output);
  }
  // The last thread holds what the row after the last row end has gathered in this tile.
  if (threadIdx.x == BLOCK - 1 && span.last_row < tiles.row_count) {
    const auto row_begin = __ldg(tiles.offsets + span.last_row);
    if ((row_begin > span.first ? row_begin : span.first) < span.end) {
      auto rest = zero_pack<T, 1>();
      rest.at[0] = cut ? left : carried + left;
      tiles.template finish<1>(tile, 0, tile_count, span.first, span.last_row, false, rest, rows,
                               output);
    }
  }
}

// ---- the kernel

extern "C" __global__ void __launch_bounds__(128, 1)
sparserl_spmv(
    const float* __restrict__ x,
    float* __restrict__ y,
    const float alpha,
    const float beta,
    const u32* __restrict__ p0_tile_rows,
    const u32* __restrict__ p0_offsets,
    const u16* __restrict__ p0_columns,
    const float* __restrict__ p0_values,
    float* p0_carry,
    u32* p0_tickets) {
  static_assert(128 % 32 == 0, "whole warps");
  __shared__ alignas(16) unsigned char scratch[4096];
  // Part 0: 512 rows with 3182 entries.
  const u32 block = blockIdx.x, column = 0;
  merge_scan<128, 8, float>(
      block,
      4u,
      MergeTiles<float, u32, 1, 1>{512u, 1024u, p0_tile_rows, p0_offsets, p0_carry, p0_tickets},
      RowRange{0u},
      AbsoluteColumns<u16, Cache::Cached>{p0_columns},
      PlainValues<float, Cache::Cached>{p0_values},
      Input<float, 1, 1>{x, column},
      Output<float, 1, 1>{y, column, alpha, beta},
      scratch);
}
