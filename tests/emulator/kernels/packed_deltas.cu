// Columns as 8-bit distances, four in a word, and 16-bit ones by a byte permutation.
// launch: <<<1, 128>>>
// argument: x read-only u8 400 random 200
// argument: y output u32 1
// expect: y sum x
extern "C" __global__ void packed_deltas(const unsigned* x, unsigned* y) {
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (threadIdx.x < 100) {
    const unsigned word = x[threadIdx.x];
    const unsigned even = __byte_perm(word, 0, 0x4240), odd = (word >> 8) & 0x00ff00ffu;
    const unsigned pairs = even + odd;
    atomicAdd(&total, (pairs & 0xffff) + (pairs >> 16));
  }
  __syncthreads();
  if (threadIdx.x == 0) *y = total;
}
