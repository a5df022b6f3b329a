#pragma once
#include "types.cuh"

// A value for each entry. Padded layouts mark the slots that hold no entry with NaN.
template <typename T, typename Cache>
struct PlainValues {
  using Scalar = T;
  const T* __restrict__ value;

  template <typename Offset>
  __device__ __forceinline__ T at(Offset i) const { return Cache::load(value + i); }
};

// One value for all entries.
template <typename T>
struct ConstantValue {
  using Scalar = T;
  const T* __restrict__ value;

  template <typename Offset>
  __device__ __forceinline__ T at(Offset) const { return __ldg(value); }
};

// A code for each entry, into a table of values. Padded layouts mark the slots that hold no entry
// with the code of a NaN.
template <typename T, typename Cache>
struct DictionaryValues {
  using Scalar = T;
  const u8* __restrict__ code;
  const T* __restrict__ table;

  template <typename Offset>
  __device__ __forceinline__ T at(Offset i) const { return __ldg(table + Cache::load(code + i)); }
};
