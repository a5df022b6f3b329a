// SpMV, y = alpha * A * x + beta * y, in f64.
//
// Made for one matrix of 144 rows, 144 columns and 672 entries, packed as this program says:
//
//   sparserl 1
//   spmv f64
//   block 256
//   keep dia plain cached 1 4
//
// Launch: sparserl_spmv<<<1, 256>>>(arguments), no dynamic shared memory.
// Arguments, in order (pointers are to device memory):
//
//   x             144 x f64, the dense input
//   y             144 x f64, the dense output; not read when beta is 0
//   alpha         f64, by value
//   beta          f64, by value
//   p0_diagonals  5 x i32
//   p0_values     720 x f64

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

// ---- dia.cuh

// Diagonals: value d * row_count + position belongs to column row + diagonals[d]. NaN marks the
// slots without an entry, so nothing outside the matrix is touched.
template <int BLOCK, int STRIDE, int UNROLL, typename T, int V, typename Rows, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void dia(u32 block, u32 row_count, Rows rows,
                                    const int* __restrict__ diagonals, u32 diagonal_count,
                                    Values values, In input, Out output) {
  const u32 position = (block * BLOCK + threadIdx.x) / STRIDE;
  if (position >= row_count) return;
  const u32 row = rows.at(position);
  auto sum = zero_pack<T, V>();
#pragma unroll UNROLL
  for (u32 d = 0; d < diagonal_count; ++d) {
    const T value = values.at(u64(d) * row_count + position);
    const bool live = value == value;
    // Empty slots read the first row, not a row outside: a load that need not wait for a branch.
    multiply_add(sum, live, value, input.at(live ? row + __ldg(diagonals + d) : 0));
  }
  output.store(row, sum);
}

// ---- the kernel

extern "C" __global__ void __launch_bounds__(256, 1)
sparserl_spmv(
    const double* __restrict__ x,
    double* __restrict__ y,
    const double alpha,
    const double beta,
    const int* __restrict__ p0_diagonals,
    const double* __restrict__ p0_values) {
  static_assert(256 % 32 == 0, "whole warps");
  // Part 0: 144 rows with 672 entries.
  const u32 block = blockIdx.x, column = 0;
  dia<256, 1, 4, double, 1>(
      block,
      144u,
      RowRange{0u},
      p0_diagonals,
      5u,
      PlainValues<double, Cache::Cached>{p0_values},
      Input<double, 1, 1>{x, column},
      Output<double, 1, 1>{y, column, alpha, beta});
}
