#pragma once
#include "types.cuh"

// *from where `live`, else `value`. Predicated: behind a branch, the next load would wait.
__device__ __forceinline__ u32 load_u8_if(u32 live, const u8* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u8 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`. Predicated: behind a branch, the next load would wait.
__device__ __forceinline__ u32 load_u16_if(u32 live, const u16* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`. Predicated: behind a branch, the next load would wait.
__device__ __forceinline__ u32 load_u32_if(u32 live, const u32* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`. Predicated: behind a branch, the next load would wait.
__device__ __forceinline__ float load_float_if(u32 live, const float* from, float value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.f32 %0, [%1]; }"
               : "+f"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`. Predicated: behind a branch, the next load would wait.
__device__ __forceinline__ double load_double_if(u32 live, const double* from, double value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.f64 %0, [%1]; }"
               : "+d"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`, predicated. Read once, so it leaves the caches first.
__device__ __forceinline__ u32 load_u8_streamed_if(u32 live, const u8* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.cs.u8 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`, predicated. Read once, so it leaves the caches first.
__device__ __forceinline__ u32 load_u16_streamed_if(u32 live, const u16* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.cs.u16 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`, predicated. Read once, so it leaves the caches first.
__device__ __forceinline__ u32 load_u32_streamed_if(u32 live, const u32* from, u32 value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.cs.u32 %0, [%1]; }"
               : "+r"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`, predicated. Read once, so it leaves the caches first.
__device__ __forceinline__ float load_float_streamed_if(u32 live, const float* from,
                                                        float value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.cs.f32 %0, [%1]; }"
               : "+f"(value) : "l"(from), "r"(live));
  return value;
}

// *from where `live`, else `value`, predicated. Read once, so it leaves the caches first.
__device__ __forceinline__ double load_double_streamed_if(u32 live, const double* from,
                                                          double value = 0) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.cs.f64 %0, [%1]; }"
               : "+d"(value) : "l"(from), "r"(live));
  return value;
}
