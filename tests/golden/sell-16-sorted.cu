// SpMV, y = alpha * A * x + beta * y, in f64.
//
// Made for one matrix of 512 rows, 512 columns and 2471 entries, packed as this program says:
//
//   sparserl 1
//   spmv f64
//   block 128
//   sort 2048 sell 16 u16 plain streamed 1 2 2
//
// Launch: sparserl_spmv<<<8, 128>>>(arguments), no dynamic shared memory.
// Arguments, in order (pointers are to device memory):
//
//   x           512 x f64, the dense input
//   y           512 x f64, the dense output; not read when beta is 0
//   alpha       f64, by value
//   beta        f64, by value
//   p0_rows     512 x u32
//   p0_slices   33 x u32
//   p0_lengths  512 x u8
//   p0_columns  3904 x u16
//   p0_values   3904 x f64

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

// ---- sell.cuh

// SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014): slices of HEIGHT rows, stored
// by columns. Every row stops at its own length, so padding is never read.
template <int BLOCK, int HEIGHT, int LANES, int STRIDE, int UNROLL, typename T, int V,
          typename Offset, typename Length, typename Rows, typename Columns, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void sell(u32 block, u32 row_count, Rows rows,
                                     const Offset* __restrict__ slices,
                                     const Length* __restrict__ lengths, Columns columns,
                                     Values values, In input, Out output) {
  // Neighbouring threads take neighbouring rows of a slice, where the entries lie side by side.
  constexpr u32 GROUP = HEIGHT * LANES * STRIDE < 32 ? HEIGHT : 32 / (LANES * STRIDE);
  const u32 thread = block * BLOCK + threadIdx.x;
  const u32 lane = thread / (STRIDE * GROUP) % LANES;
  const u32 position = thread / (STRIDE * GROUP * LANES) * GROUP + thread / STRIDE % GROUP;
  const bool live = position < row_count;

  auto sum = zero_pack<T, V>();
  if (live) {
    const u32 length = __ldg(lengths + position);
    const u32 slice = position / HEIGHT;
    const Offset first = __ldg(slices + slice) + position % HEIGHT;
    const Offset end = first + Offset(length) * HEIGHT;
    walk<LANES * HEIGHT, UNROLL>(sum, first + lane * HEIGHT, end, columns.of(slice), values, input);
  }
  reduce_lanes<LANES, STRIDE * GROUP>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}

// ---- the kernel

extern "C" __global__ void __launch_bounds__(128, 1)
sparserl_spmv(
    const double* __restrict__ x,
    double* __restrict__ y,
    const double alpha,
    const double beta,
    const u32* __restrict__ p0_rows,
    const u32* __restrict__ p0_slices,
    const u8* __restrict__ p0_lengths,
    const u16* __restrict__ p0_columns,
    const double* __restrict__ p0_values) {
  static_assert(128 % 32 == 0, "whole warps");
  // Part 0: 512 rows with 2471 entries.
  const u32 block = blockIdx.x, column = 0;
  sell<128, 16, 2, 1, 2, double, 1>(
      block,
      512u,
      RowList{p0_rows},
      p0_slices,
      p0_lengths,
      AbsoluteColumns<u16, Cache::Streamed>{p0_columns},
      PlainValues<double, Cache::Streamed>{p0_values},
      Input<double, 1, 1>{x, column},
      Output<double, 1, 1>{y, column, alpha, beta});
}
