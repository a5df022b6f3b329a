// What links the launches of a chain: it ends each one before the next begins, as a caller does who uses the result.

// Reads a word that the launch before has written and writes a word that the launch after reads. `mask` is 0, so that
// the word stays what it is, bit by bit; the compiler does not know that, and so has to do both.
extern "C" __global__ void chain_link(const u32* output, u32* input, u32 mask) { *input ^= *output & mask; }
