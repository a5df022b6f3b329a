// SpMV, y = alpha * A * x + beta * y, in f64.
//
// Made for one matrix of 0 rows, 5 columns and 0 entries, packed as this program says:
//
//   sparserl 1
//   spmv f64
//   block 64
//   keep merge 2 u16 plain cached 1 scan
//
// Launch: sparserl_spmv<<<1, 64>>>(arguments), no dynamic shared memory.
// Arguments, in order (pointers are to device memory):
//
//   x             5 x f64, the dense input
//   y             0 x f64, the dense output; not read when beta is 0
//   alpha         f64, by value
//   beta          f64, by value
//   p0_tile_rows  1 x u32
//   p0_offsets    1 x u32
//   p0_columns    0 x u16
//   p0_values     0 x f64
//   p0_carry      0 x f64, workspace
//   p0_tickets    0 x u32, workspace
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

// ---- the kernel

extern "C" __global__ void __launch_bounds__(64, 1)
sparserl_spmv(
    const double* __restrict__ x,
    double* __restrict__ y,
    const double alpha,
    const double beta,
    const u32* __restrict__ p0_tile_rows,
    const u32* __restrict__ p0_offsets,
    const u16* __restrict__ p0_columns,
    const double* __restrict__ p0_values,
    double* p0_carry,
    u32* p0_tickets) {
  static_assert(64 % 32 == 0, "whole warps");
}
