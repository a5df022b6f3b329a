#pragma once
#include "types.cuh"

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
