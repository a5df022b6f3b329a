#pragma once
#include "types.cuh"

// Four neighbouring sums, which loads and stores of 16 bytes move.
struct alignas(16) Four {
  Scalar of[4];
};

// A counter that other blocks raise, and behind it what they have stored before.
__device__ __forceinline__ u32 load_acquire(const u32* counter) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

// Copies 16 bytes to shared memory, where they are behind wait_for_copies(): any number of copies
// are under way at once.
__device__ __forceinline__ void copy_async(uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *to = *from;
#endif
}

// Waits for the copies of this thread.
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
