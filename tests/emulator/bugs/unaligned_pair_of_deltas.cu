// Two 16-bit differences are loaded at once, beginning at an odd one.
// launch: <<<1, 32>>>
// matrix: rows=32 columns=100 mean=8
// argument: row_ptr read-only i32 csr-offsets
// argument: deltas read-only u16 csr-columns
// argument: y output u32 32
extern "C" __global__ void unaligned_pair_of_deltas(const int* row_ptr, const unsigned short* deltas, unsigned* y) {
  const int begin = row_ptr[threadIdx.x], end = row_ptr[threadIdx.x + 1];
  unsigned sum = 0;
  for (int i = begin; i + 2 <= end; i += 2) {
    const unsigned pair = *reinterpret_cast<const unsigned*>(deltas + i);  // BUG: misaligned
    sum += (pair & 0xffff) + (pair >> 16);
  }
  y[threadIdx.x] = sum;
}
