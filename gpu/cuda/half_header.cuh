// What kernels use of <cuda_fp16.h>, or of <cuda_bf16.h>: NVRTC comes without either. Written
// anew, after the "Half Precision Intrinsics" of NVIDIA's CUDA Math API Reference; what is missing
// here is an unknown name there.
struct $T_raw { unsigned short x; };
struct $T2_raw { unsigned short x, y; };

struct __align__(2) $T {
  unsigned short bits;
  $T() = default;
  __device__ $T(const $T_raw& raw) : bits(raw.x) {}
  __device__ $T(float f) { asm("cvt.rn.$PTX.f32 %0, %1;" : "=h"(bits) : "f"(f)); }
  __device__ $T(double d) : $T(float(d)) {}
  __device__ $T(int i) : $T(float(i)) {}
  __device__ $T(unsigned i) : $T(float(i)) {}
  __device__ $T(short i) : $T(float(i)) {}
  __device__ $T(unsigned short i) : $T(float(i)) {}
  __device__ $T(long long i) : $T(float(i)) {}
  __device__ $T(unsigned long long i) : $T(float(i)) {}
  __device__ operator $T_raw() const { return {bits}; }
  __device__ operator float() const { $TO_FLOAT }
};

struct __align__(4) $T2 {
  $T x, y;
  $T2() = default;
  __device__ $T2(const $T& a, const $T& b) : x(a), y(b) {}
};

typedef $T $SHORT;
typedef $T2 $SHORT2;

__device__ inline $T $T_of(unsigned short bits) { $T h; h.bits = bits; return h; }
__device__ inline unsigned $T2_bits($T2 h) { return h.x.bits | unsigned(h.y.bits) << 16; }
__device__ inline $T2 $T2_of(unsigned bits) {
  return $T2($T_of(bits & 0xffff), $T_of(bits >> 16));
}

__device__ inline float __$N2float($T h) { return h; }
__device__ inline $T __float2$N(float f) { return f; }
__device__ inline $T __float2$N_rn(float f) { return f; }
__device__ inline $T __double2$N(double d) { return d; }
__device__ inline $T __int2$N_rn(int i) { return i; }
__device__ inline $T __uint2$N_rn(unsigned i) { return i; }
__device__ inline int __$N2int_rn($T h) { return __float2int_rn(h); }
__device__ inline int __$N2int_rz($T h) { return __float2int_rz(h); }
__device__ inline unsigned __$N2uint_rn($T h) { return __float2uint_rn(h); }
__device__ inline unsigned short __$N_as_ushort($T h) { return h.bits; }
__device__ inline short __$N_as_short($T h) { return h.bits; }
__device__ inline $T __ushort_as_$N(unsigned short bits) { return $T_of(bits); }
__device__ inline $T __short_as_$N(short bits) { return $T_of(bits); }

__device__ inline $T __hfma($T a, $T b, $T c) {
  unsigned short r;
  asm("fma.rn.$PTX %0, %1, %2, %3;" : "=h"(r) : "h"(a.bits), "h"(b.bits), "h"(c.bits));
  return $T_of(r);
}
__device__ inline $T __hneg($T a) { return $T_of(a.bits ^ 0x8000); }
__device__ inline $T __hadd($T a, $T b) { return __hfma(a, $T_of($ONE), b); }
__device__ inline $T __hsub($T a, $T b) { return __hfma(b, __hneg($T_of($ONE)), a); }
__device__ inline $T __hmul($T a, $T b) { return __hfma(a, b, $T_of(0x8000)); }
__device__ inline $T __hdiv($T a, $T b) { return float(a) / float(b); }
__device__ inline $T __habs($T a) { return $T_of(a.bits & 0x7fff); }
__device__ inline $T __hmax($T a, $T b) { return fmaxf(a, b); }
__device__ inline $T __hmin($T a, $T b) { return fminf(a, b); }
__device__ inline bool __heq($T a, $T b) { return float(a) == float(b); }
__device__ inline bool __hne($T a, $T b) { return float(a) != float(b); }
__device__ inline bool __hlt($T a, $T b) { return float(a) < float(b); }
__device__ inline bool __hle($T a, $T b) { return float(a) <= float(b); }
__device__ inline bool __hgt($T a, $T b) { return float(a) > float(b); }
__device__ inline bool __hge($T a, $T b) { return float(a) >= float(b); }
__device__ inline bool __hisnan($T a) { return float(a) != float(a); }
__device__ inline int __hisinf($T a) {
  return isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0;
}
__device__ inline $T hsqrt($T a) { return sqrtf(a); }
__device__ inline $T hrsqrt($T a) { return rsqrtf(a); }
__device__ inline $T hrcp($T a) { return 1.0f / float(a); }
__device__ inline $T hexp($T a) { return expf(a); }
__device__ inline $T hexp2($T a) { return exp2f(a); }
__device__ inline $T hlog($T a) { return logf(a); }
__device__ inline $T hlog2($T a) { return log2f(a); }

__device__ inline $T operator+($T a, $T b) { return __hadd(a, b); }
__device__ inline $T operator-($T a, $T b) { return __hsub(a, b); }
__device__ inline $T operator*($T a, $T b) { return __hmul(a, b); }
__device__ inline $T operator/($T a, $T b) { return __hdiv(a, b); }
__device__ inline $T operator+($T a) { return a; }
__device__ inline $T operator-($T a) { return __hneg(a); }
__device__ inline $T& operator+=($T& a, $T b) { return a = a + b; }
__device__ inline $T& operator-=($T& a, $T b) { return a = a - b; }
__device__ inline $T& operator*=($T& a, $T b) { return a = a * b; }
__device__ inline $T& operator/=($T& a, $T b) { return a = a / b; }
__device__ inline bool operator==($T a, $T b) { return __heq(a, b); }
__device__ inline bool operator!=($T a, $T b) { return __hne(a, b); }
__device__ inline bool operator<($T a, $T b) { return __hlt(a, b); }
__device__ inline bool operator<=($T a, $T b) { return __hle(a, b); }
__device__ inline bool operator>($T a, $T b) { return __hgt(a, b); }
__device__ inline bool operator>=($T a, $T b) { return __hge(a, b); }

__device__ inline $T2 $MAKE($T a, $T b) { return $T2(a, b); }
__device__ inline $T2 __halves2$P($T a, $T b) { return $T2(a, b); }
__device__ inline $T2 __$N2$P($T a) { return $T2(a, a); }
__device__ inline $T2 __float2$P_rn(float f) { return $T2(f, f); }
__device__ inline $T2 __floats2$P_rn(float a, float b) { return $T2(a, b); }
__device__ inline $T2 __float22$P_rn(float2 f) { return $T2(f.x, f.y); }
__device__ inline float2 __$P2float2($T2 h) { return make_float2(h.x, h.y); }
__device__ inline float __low2float($T2 h) { return h.x; }
__device__ inline float __high2float($T2 h) { return h.y; }
__device__ inline $T __low2$N($T2 h) { return h.x; }
__device__ inline $T __high2$N($T2 h) { return h.y; }
__device__ inline $T2 __low2$P($T2 h) { return $T2(h.x, h.x); }
__device__ inline $T2 __high2$P($T2 h) { return $T2(h.y, h.y); }
__device__ inline $T2 __lows2$P($T2 a, $T2 b) { return $T2(a.x, b.x); }
__device__ inline $T2 __highs2$P($T2 a, $T2 b) { return $T2(a.y, b.y); }
__device__ inline $T2 __lowhigh2highlow($T2 h) { return $T2(h.y, h.x); }

__device__ inline $T2 __hfma2($T2 a, $T2 b, $T2 c) {
  unsigned r;
  asm("fma.rn.$PTXx2 %0, %1, %2, %3;"
      : "=r"(r)
      : "r"($T2_bits(a)), "r"($T2_bits(b)), "r"($T2_bits(c)));
  return $T2_of(r);
}
__device__ inline $T2 __hadd2($T2 a, $T2 b) { return $T2(a.x + b.x, a.y + b.y); }
__device__ inline $T2 __hsub2($T2 a, $T2 b) { return $T2(a.x - b.x, a.y - b.y); }
__device__ inline $T2 __hmul2($T2 a, $T2 b) { return $T2(a.x * b.x, a.y * b.y); }
__device__ inline $T2 __h2div($T2 a, $T2 b) { return $T2(a.x / b.x, a.y / b.y); }
__device__ inline $T2 __hneg2($T2 a) { return $T2(-a.x, -a.y); }
__device__ inline $T2 __habs2($T2 a) { return $T2(__habs(a.x), __habs(a.y)); }
__device__ inline $T2 __hmax2($T2 a, $T2 b) { return $T2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
__device__ inline $T2 __hmin2($T2 a, $T2 b) { return $T2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
__device__ inline $T2 operator+($T2 a, $T2 b) { return __hadd2(a, b); }
__device__ inline $T2 operator-($T2 a, $T2 b) { return __hsub2(a, b); }
__device__ inline $T2 operator*($T2 a, $T2 b) { return __hmul2(a, b); }
__device__ inline $T2 operator/($T2 a, $T2 b) { return __h2div(a, b); }
__device__ inline $T2 operator-($T2 a) { return __hneg2(a); }
__device__ inline $T2& operator+=($T2& a, $T2 b) { return a = a + b; }
__device__ inline $T2& operator-=($T2& a, $T2 b) { return a = a - b; }
__device__ inline $T2& operator*=($T2& a, $T2 b) { return a = a * b; }

#define LOAD(name)                                                     \
  __device__ inline $T name(const $T* from) {                          \
    return $T_of(name(reinterpret_cast<const unsigned short*>(from))); \
  }                                                                    \
  __device__ inline $T2 name(const $T2* from) {                        \
    return $T2_of(name(reinterpret_cast<const unsigned*>(from)));      \
  }
LOAD(__ldg) LOAD(__ldcg) LOAD(__ldca) LOAD(__ldcs) LOAD(__ldlu) LOAD(__ldcv)
#undef LOAD
#define STORE(name)                                             \
  __device__ inline void name($T* to, $T h) {                   \
    name(reinterpret_cast<unsigned short*>(to), h.bits);        \
  }                                                             \
  __device__ inline void name($T2* to, $T2 h) {                 \
    name(reinterpret_cast<unsigned*>(to), $T2_bits(h));         \
  }
STORE(__stwb) STORE(__stcg) STORE(__stcs) STORE(__stwt)
#undef STORE
#define SHUFFLE(name, By)                                                          \
  __device__ inline $T name(unsigned mask, $T h, By by, int width = 32) {          \
    return $T_of(name(mask, unsigned(h.bits), by, width));                         \
  }                                                                                \
  __device__ inline $T2 name(unsigned mask, $T2 h, By by, int width = 32) {        \
    return $T2_of(name(mask, $T2_bits(h), by, width));                             \
  }
SHUFFLE(__shfl_sync, int) SHUFFLE(__shfl_xor_sync, int)
SHUFFLE(__shfl_up_sync, unsigned) SHUFFLE(__shfl_down_sync, unsigned)
#undef SHUFFLE
__device__ inline $T atomicAdd($T* at, $T h) {
  unsigned short old;
  asm volatile("atom.add.noftz.$PTX %0, [%1], %2;"
               : "=h"(old) : "l"(at), "h"(h.bits) : "memory");
  return $T_of(old);
}
__device__ inline $T2 atomicAdd($T2* at, $T2 h) {
  unsigned old;
  asm volatile("atom.add.noftz.$PTXx2 %0, [%1], %2;"
               : "=r"(old) : "l"(at), "r"($T2_bits(h)) : "memory");
  return $T2_of(old);
}
