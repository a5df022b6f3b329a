// What verifies kernels on the device: fresh operands, an independent product with error bounds, and digests of memory.
//
// The product is the reference of sparserl_core::reference, computed the same way: sums of float in double, where
// products are exact, those of double with the compensated dot product Dot2 (Ogita, Rump and Oishi, Accurate Sum and Dot
// Product, 2005). The intrinsics keep the compiler from fusing what must be rounded.
//
// A is the type of the matrix, which is never wider than D, the type of the dense operands and of the result. The sums
// that are judged, alpha and beta are of the accumulator of D.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// ---- half precision: numbers of 16 bits, of which everything is computed in float

struct f16 {
  u16 bits;
  f16() = default;
  __device__ f16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

// The upper half of a float.
struct bf16 {
  u16 bits;
  bf16() = default;
  __device__ bf16(float value) {
    const u32 whole = __float_as_uint(value);
    bits = u16((isnan(value) ? whole | 0x400000u : whole + 0x7fffu + (whole >> 16 & 1u)) >> 16);
  }
  __device__ operator float() const { return __uint_as_float(u32(bits) << 16); }
};

template <typename D>
struct Accumulator {
  typedef float type;
};
template <>
struct Accumulator<double> {
  typedef double type;
};

// ---- operands

// The output function of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
__device__ u64 scramble(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

__device__ u64 random_bits(u64 seed, u64 i) { return scramble(seed + (i + 1) * 0x9e3779b97f4a7c15ull); }

// Uniform in [-1, 1), with all the bits that the type has there.
__device__ void uniform(float& out, u64 bits) { out = float(bits >> 40) * 0x1p-23f - 1.0f; }
__device__ void uniform(double& out, u64 bits) { out = double(bits >> 11) * 0x1p-52 - 1.0; }
__device__ void uniform(f16& out, u64 bits) { out = float(bits >> 53) * 0x1p-10f - 1.0f; }
__device__ void uniform(bf16& out, u64 bits) { out = float(bits >> 56) * 0x1p-7f - 1.0f; }

__device__ u64 first_index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ u64 stride() { return u64(gridDim.x) * blockDim.x; }

template <typename T>
__device__ void fill(T* out, u64 n, u64 seed) {
  for (u64 i = first_index(); i < n; i += stride()) uniform(out[i], random_bits(seed, i));
}

// Replaces one element in about 32, and at least one, by another element of another sign and size: nothing that a kernel
// could tell from a result without computing it.
template <typename T>
__device__ void corrupt(T* out, u64 n, u64 seed) {
  for (u64 i = first_index(); i < n; i += stride()) {
    const u64 bits = random_bits(seed, i);
    if (bits % 32 == 0 || i == seed % n) out[i] = out[(bits >> 8) % n] * T(-0.5 - double(bits >> 40) * 0x1p-24);
  }
}

// Keeps the rows `first` and `last` of a dense operand and a share of the others, about threshold / 2^64; the rest
// becomes 0.
template <typename T>
__device__ void thin(T* out, u64 n, u32 width, u64 seed, u64 threshold, u64 first, u64 last) {
  for (u64 i = first_index(); i < n; i += stride()) {
    const u64 row = i / width;
    if (row != first && row != last && random_bits(seed, row) >= threshold) out[i] = 0;
  }
}

// Copies some rows of a dense operand, one after the other.
template <typename T>
__device__ void gather(const T* dense, u32 width, const u32* rows, u64 count, T* out) {
  for (u64 i = first_index(); i < count * width; i += stride()) out[i] = dense[u64(rows[i / width]) * width + i % width];
}

// ---- digests

// A whole allocation or a part of one, the number of the first chunk of it, and the place of its digest. The address is a
// multiple of 4.
struct Region {
  u64 address, bytes, first_chunk, place;
};

// An argument rather than memory, so that no judged kernel can write there. A block has a thread for each.
struct Regions {
  Region all[64];
};

// Bytes that a block digests at a time.
constexpr u64 chunk_bytes = 1 << 16;

// 16 bytes with their place, by the multiplication of wyhash (Wang Yi, wyhash, final version 4).
__device__ u64 mix(u64 place, uint4 words) {
  const u64 a = (u64(words.y) << 32 | words.x) ^ (place + 1) * 0x9e3779b97f4a7c15ull;
  const u64 b = (u64(words.w) << 32 | words.z) ^ (place + 1) * 0xc2b2ae3d27d4eb4full;
  return a * b ^ __umul64hi(a, b);
}

// The words of a region from 4 * place on; what lies behind its end counts as 0.
__device__ uint4 words_at(const Region& region, u64 place) {
  const u64 begin = 16 * place;
  if (region.address % 16 == 0 && begin + 16 <= region.bytes) {
    return *reinterpret_cast<const uint4*>(region.address + begin);
  }
  u32 words[4] = {0, 0, 0, 0};
  for (u64 i = begin; i < begin + 16 && i < region.bytes; ++i) {
    words[(i - begin) / 4] |= u32(*reinterpret_cast<const unsigned char*>(region.address + i)) << i % 4 * 8;
  }
  return {words[0], words[1], words[2], words[3]};
}

extern "C" __global__ void clear_digests(const __grid_constant__ Regions regions, u32 count, u64* digests) {
  if (threadIdx.x < count) digests[regions.all[threadIdx.x].place] = 0;
}

// Adds to `changed` how many regions have other digests than before.
extern "C" __global__ void compare_digests(const __grid_constant__ Regions regions, u32 count, const u64* before,
                                           const u64* after, u64* changed) {
  if (threadIdx.x >= count) return;
  const u64 place = regions.all[threadIdx.x].place;
  if (before[place] != after[place]) atomicAdd(changed, 1ull);
}

// Adds sums over each region's words, mixed with their place, so that no order of addition matters. Regions follow each
// other by their first chunks.
extern "C" __global__ void digest(const __grid_constant__ Regions regions, u32 count, u64 chunks, u64* digests) {
  for (u64 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    u32 index = 0;
    for (u32 step = 32; step > 0; step /= 2) {
      if (index + step < count && regions.all[index + step].first_chunk <= chunk) index += step;
    }
    const Region& region = regions.all[index];
    const u64 begin = (chunk - region.first_chunk) * (chunk_bytes / 16);
    const u64 end = min(begin + chunk_bytes / 16, (region.bytes + 15) / 16);
    u64 sum = 0;
#pragma unroll 4
    for (u64 place = begin + threadIdx.x; place < end; place += blockDim.x) sum += mix(place, words_at(region, place));
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(&digests[region.place], sum);
  }
}

// ---- the product

// A dot product in progress.
struct Sum {
  double high, low, magnitude;
};

// a + b and its rounding error, exactly (Knuth, The Art of Computer Programming, vol. 2, 4.2.2).
__device__ double two_sum(double a, double b, double& error) {
  const double sum = __dadd_rn(a, b), b_part = __dsub_rn(sum, a);
  error = __dadd_rn(__dsub_rn(a, __dsub_rn(sum, b_part)), __dsub_rn(b, b_part));
  return sum;
}

// The matrix is no wider, so that the product is exact.
__device__ void accumulate(Sum& sum, double a, float x) {
  const double product = __dmul_rn(a, x);
  sum.high = __dadd_rn(sum.high, product);
  sum.magnitude += fabs(product);
}

__device__ void accumulate(Sum& sum, double a, double x) {
  const double product = __dmul_rn(a, x), lost = __fma_rn(a, x, -product);
  double error;
  sum.high = two_sum(sum.high, product, error);
  sum.low += error + lost;
  sum.magnitude += fabs(product);
}

__device__ void merge(Sum& sum, const Sum& other) {
  double error;
  sum.high = two_sum(sum.high, other.high, error);
  sum.low += error + other.low;
  sum.magnitude += other.magnitude;
}

template <typename T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr double roundoff = 0x1p-24, smallest = 0x1p-149, largest = 0x1.fffffep127;
};
template <>
struct Limits<double> {
  static constexpr double roundoff = 0x1p-53, smallest = 0x1p-1074, largest = 0x1.fffffffffffffp1023;
};
template <>
struct Limits<f16> {
  static constexpr double roundoff = 0x1p-11, smallest = 0x1p-24, largest = 65504;
};
template <>
struct Limits<bf16> {
  static constexpr double roundoff = 0x1p-8, smallest = 0x1p-133, largest = 0x1.fep127;
};

// What the comparison of a result found; zeros to begin with.
struct Verdict {
  u64 changed;          // regions that the launch has changed: then nothing is compared, since the matrix may be one
  u64 violations;       // elements off by more than their bound
  u64 unbounded;        // elements that no finite bound could be given for
  u64 worst_ratio;      // bits of the largest |error| / bound; non-negative doubles order as their bits do
  u64 first_violation;  // complement of the least index of a violation
};

// Whether a matrix may be read: offsets and columns that a kernel has written to lead anywhere.
__device__ bool is_intact(const Verdict* verdict) { return !verdict || verdict->changed == 0; }

// Operands of alpha * A * X + beta * Y0 and the result to be judged. Where `values` is not null, the product and its
// bounds are written there instead of judging.
template <typename A, typename D, typename Offset>
struct Product {
  const Offset* offsets;
  const u32* columns;
  const A* entries;
  const D* dense;
  const D* initial;
  const D* result;
  double* values;
  double* bounds;
  Verdict* verdict;
  u64 rows;
  u32 width;
  typename Accumulator<D>::type alpha, beta;
};

template <typename A, typename D, typename Offset>
__device__ void conclude(const Product<A, D, Offset>& p, u64 row, u32 column, const Sum& sum) {
  const u64 index = row * p.width + column;
  const double alpha = p.alpha, beta = p.beta;
  const double start = beta != 0 ? double(p.initial[index]) : 0.0;
  // alpha * sum + beta * start to about twice the precision of double.
  const double first = __dmul_rn(alpha, sum.high), second = __dmul_rn(beta, start);
  const double first_lost = __fma_rn(alpha, sum.high, -first) + alpha * sum.low;
  const double second_lost = __fma_rn(beta, start, -second);
  double error;
  const double value = two_sum(first, second, error);
  const double correction = error + first_lost + second_lost;

  const double roundings = double(p.offsets[row + 1] - p.offsets[row]) + 2;
  const double gain = fmax(fabs(alpha), 1.0), offset = fabs(beta * start);
  const double peak = gain * sum.magnitude + offset;
  typedef typename Accumulator<D>::type S;
  bool bounded = peak <= Limits<S>::largest / 4;
  double bound = 2 * Limits<S>::roundoff * roundings * (fabs(alpha) * sum.magnitude + offset) +
                 roundings * gain * Limits<S>::smallest;
  if constexpr (sizeof(D) < sizeof(S)) {
    // The result is rounded once more.
    const double most = fabs(value + correction) + bound;
    bounded = bounded && most <= Limits<D>::largest;
    bound += Limits<D>::roundoff * most + Limits<D>::smallest / 2;
  }
  if (!bounded) bound = __longlong_as_double(0x7ff0000000000000ll);
  if (p.values) {
    const double corrected = value + correction;
    p.values[index] = isnan(corrected) ? value : corrected;
    p.bounds[index] = bound;
    return;
  }
  const double got = p.result[index];
  double ratio = 0;
  if (isnan(got)) {
    ratio = __longlong_as_double(0x7ff0000000000000ll);
  } else if (bounded) {
    ratio = fabs(__dsub_rn(got, value) - correction) / bound;
    if (isnan(ratio)) ratio = __longlong_as_double(0x7ff0000000000000ll);
  }
  if (!bounded) atomicAdd(&p.verdict->unbounded, 1ull);
  // Most results are no worse than one seen before, which a plain read tells without an atomic.
  const u64 bits = __double_as_longlong(ratio);
  if (bits > *reinterpret_cast<volatile u64*>(&p.verdict->worst_ratio)) atomicMax(&p.verdict->worst_ratio, bits);
  if (ratio > 1) {
    atomicAdd(&p.verdict->violations, 1ull);
    atomicMax(&p.verdict->first_violation, ~index);
  }
}

// The entries of a row from `begin` on in steps of `step`, for one column of the dense operand.
template <typename A, typename D, typename Offset>
__device__ Sum dot(const Product<A, D, Offset>& p, Offset begin, Offset end, u32 step, u32 column) {
  Sum sum = {0, 0, 0};
#pragma unroll 4
  for (Offset k = begin; k < end; k += step) {
    accumulate(sum, p.entries[k], p.dense[u64(p.columns[k]) * p.width + column]);
  }
  return sum;
}

// Long rows are cut into slices, which blocks sum on their own; a sum of sums follows in another kernel. The cuts depend
// on the matrix alone, and sums are merged in the order of lanes, warps and slices: the result is the same in every run.
//
// The bounds hold for any such tree of additions. With n entries, no term takes part in more than n of them, as in a loop
// over the row. For sums of float, products are exact in double and each addition loses at most 2^-53 of what is summed:
// n 2^-53 times the sum of magnitudes in all, where a result is allowed 2 (n + 2) 2^-24 times. For sums of double, Dot2's
// analysis uses two facts, which merge() keeps: two_sum() splits each addition into a rounded sum and an exact error, so
// that `high` and the errors together are the sum, exactly; and all errors reach `low` in at most n additions, whose own
// loss is of second order, at most about (n 2^-53)^2 times the sum of magnitudes.

// The entries of a long row from `begin` on and before `end`.
struct Slice {
  u64 begin, end;
};

// A row and its slices from `first` on and before `last`.
struct LongRow {
  u64 row, first, last;
};

constexpr u32 warps = 8;

__device__ void merge_lanes(Sum& sum) {
  for (int other = 16; other > 0; other /= 2) {
    const Sum theirs = {__shfl_down_sync(~0u, sum.high, other), __shfl_down_sync(~0u, sum.low, other),
                        __shfl_down_sync(~0u, sum.magnitude, other)};
    merge(sum, theirs);
  }
}

// Blocks of 256 threads take 8 rows of at most `long_row` entries at a time, one for each warp; lanes share a row's entries
// when there is one column, and take a column each otherwise.
template <typename A, typename D, typename Offset>
__device__ void judge(const Product<A, D, Offset>& p, u64 long_row) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool single = p.width == 1;
  if (!is_intact(p.verdict)) return;
  for (u64 row = u64(blockIdx.x) * warps + warp; row < p.rows; row += u64(gridDim.x) * warps) {
    const Offset begin = p.offsets[row], end = p.offsets[row + 1];
    if (end - begin > long_row) continue;
    for (u32 tile = blockIdx.y * 32; tile < p.width; tile += gridDim.y * 32) {
      const u32 column = single ? 0 : tile + lane;
      const bool active = single || column < p.width;
      Sum sum = {0, 0, 0};
      if (active) sum = dot(p, single ? begin + lane : begin, end, single ? 32 : 1, column);
      if (single) merge_lanes(sum);
      if (active && (!single || lane == 0)) conclude(p, row, column, sum);
    }
  }
}

// A block for each slice: its warps share the entries.
template <typename A, typename D>
__device__ void sum_slices(const Product<A, D, u64>& p, const Slice* slices, u64 count, Sum* sums) {
  __shared__ Sum partial[warps][32];
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool single = p.width == 1;
  if (!is_intact(p.verdict)) return;
  for (u64 index = blockIdx.x; index < count; index += gridDim.x) {
    const Slice slice = slices[index];
    for (u32 tile = blockIdx.y * 32; tile < p.width; tile += gridDim.y * 32) {
      const u32 column = single ? 0 : tile + lane;
      const bool active = single || column < p.width;
      Sum sum = {0, 0, 0};
      if (active) {
        const u64 from = slice.begin + (single ? threadIdx.x : warp);
        sum = dot(p, from, slice.end, single ? warps * 32 : warps, column);
      }
      if (single) merge_lanes(sum);
      partial[warp][lane] = sum;
      __syncthreads();
      if (warp == 0 && active && (!single || lane == 0)) {
        for (u32 w = 1; w < warps; ++w) merge(sum, partial[w][lane]);
        sums[index * p.width + column] = sum;
      }
      __syncthreads();
    }
  }
}

// A thread for each element of a long row.
template <typename A, typename D, typename Offset>
__device__ void judge_long(const Product<A, D, Offset>& p, const LongRow* long_rows, u64 count, const Sum* sums) {
  if (!is_intact(p.verdict)) return;
  for (u64 i = first_index(); i < count * p.width; i += stride()) {
    const LongRow row = long_rows[i / p.width];
    const u32 column = u32(i % p.width);
    Sum sum = {0, 0, 0};
    for (u64 slice = row.first; slice < row.last; ++slice) merge(sum, sums[slice * p.width + column]);
    conclude(p, row.row, column, sum);
  }
}

#define DEFINE_DENSE(type, name)                                                                               \
  extern "C" __global__ void fill_##name(type* out, u64 n, u64 seed) { fill(out, n, seed); }                   \
  extern "C" __global__ void corrupt_##name(type* out, u64 n, u64 seed) { corrupt(out, n, seed); }             \
  extern "C" __global__ void thin_##name(type* out, u64 n, u32 width, u64 seed, u64 threshold, u64 first,      \
                                         u64 last) {                                                           \
    thin(out, n, width, seed, threshold, first, last);                                                         \
  }                                                                                                            \
  extern "C" __global__ void gather_##name(const type* dense, u32 width, const u32* rows, u64 count,           \
                                           type* out) {                                                        \
    gather(dense, width, rows, count, out);                                                                    \
  }

DEFINE_DENSE(float, f32)
DEFINE_DENSE(double, f64)
DEFINE_DENSE(f16, f16)
DEFINE_DENSE(bf16, bf16)

#define DEFINE(a, d, name)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256)                                                            \
      sum_slices_##name(const Slice* slices, u64 count, const u32* columns, const a* entries, const d* dense,  \
                        Verdict* v, u32 width, Sum* sums) {                                                    \
    sum_slices<a, d>({0, columns, entries, dense, 0, 0, 0, 0, v, 0, width, 0, 0}, slices, count, sums);        \
  }                                                                                                            \
  DEFINE_JUDGE(a, d, name, u32)                                                                                \
  DEFINE_JUDGE(a, d, name, u64)

#define DEFINE_JUDGE(a, d, name, offset)                                                                       \
  extern "C" __global__ void __launch_bounds__(256)                                                            \
      judge_##name##_##offset(const offset* offsets, const u32* columns, const a* entries, const d* dense,     \
                              const d* initial, const d* result, double* values, double* bounds, Verdict* v,   \
                              u64 rows, u32 width, Accumulator<d>::type alpha, Accumulator<d>::type beta,      \
                              u64 long_row) {                                                                  \
    judge<a, d, offset>({offsets, columns, entries, dense, initial, result, values, bounds, v, rows, width,    \
                         alpha, beta}, long_row);                                                              \
  }                                                                                                            \
  extern "C" __global__ void __launch_bounds__(256)                                                            \
      judge_long_##name##_##offset(const offset* offsets, const u32* columns, const a* entries,                \
                                   const d* dense, const d* initial, const d* result, double* values,          \
                                   double* bounds, Verdict* v, u64 rows, u32 width,                            \
                                   Accumulator<d>::type alpha, Accumulator<d>::type beta,                      \
                                   const LongRow* long_rows, u64 count, const Sum* sums) {                     \
    judge_long<a, d, offset>({offsets, columns, entries, dense, initial, result, values, bounds, v, rows,      \
                              width, alpha, beta}, long_rows, count, sums);                                    \
  }

// Named by the types of the matrix and of the dense operands.
DEFINE(float, float, f32_f32)
DEFINE(double, double, f64_f64)
DEFINE(float, double, f32_f64)
DEFINE(f16, f16, f16_f16)
DEFINE(bf16, bf16, bf16_bf16)
