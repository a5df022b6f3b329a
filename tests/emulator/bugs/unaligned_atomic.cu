// The 64-bit counter behind a table of 32-bit counts lies at an odd one of them.
// launch: <<<1, 32>>>
// argument: bins read-only i32 32 random 7
// argument: counts writable u32 10 zero
extern "C" __global__ void unaligned_atomic(const int* bins, unsigned* counts) {
  atomicAdd(&counts[bins[threadIdx.x]], 1u);
  atomicAdd(reinterpret_cast<unsigned long long*>(counts + 7), 1ull);  // BUG: misaligned
}
