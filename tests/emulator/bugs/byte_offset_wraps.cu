// Offsets of blocks are kept in bytes in 32 bits, and the last blocks lie beyond 4 GiB.
// launch: <<<1, 32>>>
// argument: values read-only f32 2048 random
// argument: y output f32 32
// argument: first_block u32 value 67108800
// argument: block_bytes u32 value 64
extern "C" __global__ void byte_offset_wraps(const float* values, float* y, unsigned first_block, unsigned block_bytes) {
  const char* base = reinterpret_cast<const char*>(values) - static_cast<unsigned long long>(first_block) * block_bytes;
  const unsigned offset = (first_block + 4 * threadIdx.x) * block_bytes;  // BUG: address-overflow
  y[threadIdx.x] = *reinterpret_cast<const float*>(base + offset);        // BUG: address-overflow; ALSO: out-of-bounds
}
