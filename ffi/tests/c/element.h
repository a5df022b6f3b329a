/* Elements of arrays in each of the API's types, for numbers that all of them hold exactly. */
#ifndef ELEMENT_H
#define ELEMENT_H
#include <stdint.h>
#include <string.h>

/* The numbers of SPARSERL_F32, ... */
enum element_type { ELEMENT_F32, ELEMENT_F64, ELEMENT_F16, ELEMENT_BF16 };

static inline size_t element_size(int type) { return type == ELEMENT_F64 ? 8 : type == ELEMENT_F32 ? 4 : 2; }

/* Zero, or a number that is normal in the type. */
static inline double element_get(int type, const void *array, size_t index) {
  const unsigned char *at = (const unsigned char *)array + index * element_size(type);
  double wide;
  float narrow;
  uint16_t half;
  uint32_t word;
  switch (type) {
    case ELEMENT_F64: return memcpy(&wide, at, sizeof wide), wide;
    case ELEMENT_F32: return memcpy(&narrow, at, sizeof narrow), narrow;
    default: memcpy(&half, at, sizeof half);
  }
  if (type == ELEMENT_BF16) word = (uint32_t)half << 16;
  else if (!(half & 0x7fff)) word = (uint32_t)half << 16;
  else word = ((uint32_t)(half & 0x8000) << 16) | (((uint32_t)(half & 0x7fff) << 13) + (112u << 23));
  return memcpy(&narrow, &word, sizeof narrow), narrow;
}

static inline void element_put(int type, void *array, size_t index, double number) {
  unsigned char *at = (unsigned char *)array + index * element_size(type);
  const float narrow = (float)number;
  uint32_t word;
  memcpy(&word, &narrow, sizeof word);
  uint16_t half = (uint16_t)(word >> 16);
  if (type == ELEMENT_F16 && (word & 0x7fffffff))
    half = (uint16_t)((word >> 16 & 0x8000) | (((word & 0x7fffffff) - (112u << 23)) >> 13));
  if (type == ELEMENT_F64) memcpy(at, &number, sizeof number);
  else if (type == ELEMENT_F32) memcpy(at, &narrow, sizeof narrow);
  else memcpy(at, &half, sizeof half);
}

/* Whole numbers from the least on, so many different ones in turn. */
static inline void element_fill(int type, void *array, size_t count, size_t modulus, double least) {
  for (size_t i = 0; i < count; ++i) element_put(type, array, i, (double)(i % modulus) + least);
}
#endif
