/* What tests ask of the driver without a GPU (driver.c), and set. */
#ifndef DRIVER_H
#define DRIVER_H
#include "check.h"

typedef struct CUstream_st *stream_t;
long driver_taken(void);
long driver_launches(void);
int driver_depth(void);
int driver_launched_with(const void *from, size_t bytes);
unsigned driver_launched_with_shared(void);
void driver_set_l2(int bytes);
void driver_set_memory(size_t bytes);
void driver_set_current(int device);
void driver_multiply_as(int value_type, unsigned columns);
void driver_break(void);
stream_t driver_stream(int device);
void driver_capture(stream_t stream, int begin);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuDevicePrimaryCtxRetain(void **primary, int device);
int cuDevicePrimaryCtxRelease_v2(int device);

static inline void *device_memory(size_t bytes) {
  unsigned long long address = 0;
  REQUIRE(cuMemAlloc_v2(&address, bytes) == 0);
  memset((void *)(uintptr_t)address, 0, bytes);
  return (void *)(uintptr_t)address;
}

static inline void device_free(const void *memory) {
  REQUIRE(cuMemFree_v2((unsigned long long)(uintptr_t)memory) == 0);
}
#endif
