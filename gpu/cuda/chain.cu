// What goes before launches in their stream. Between the launches of a chain it ends each one before the next begins, as a
// caller does who uses the result; before a check it is a kernel that ends late.

// Reads a word that the launch before has written and writes a word that the launch after reads, in which some bits are
// flipped. `mask` is 0, so that the others stay what they are; the compiler does not know that, and so has to read.
extern "C" __global__ void chain_link(const u32* output, u32* input, u32 mask, u64 word, u32 flipped) {
  input[word] ^= *output & mask ^ flipped;
}

// Makes other operands of those that there are, lets the next kernel in the stream begin, and a while later puts them
// back. Whoever reads them before this kernel has ended, or writes to the output, is wrong then. Changed are the signs, and
// a bit of the mantissa, of whatever type: numbers like any others.
extern "C" __global__ void __launch_bounds__(256)
    write_late(u32* input, u64 input_words, u32* output, u64 output_words, u64 nanoseconds) {
  const u32 changed = 0x80208020;
  const auto change = [=] {
    for (u64 i = first_index(); i < input_words; i += stride()) input[i] ^= changed;
    for (u64 i = first_index(); i < output_words; i += stride()) output[i] ^= changed;
    __threadfence();
  };
  change();
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
  change();
}
