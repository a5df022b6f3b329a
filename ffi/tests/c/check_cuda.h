/* What the tests in C that need a GPU share. */
#ifndef CHECK_CUDA_H
#define CHECK_CUDA_H
#include "check.h"
#include <cuda_runtime_api.h>

/* Ends the program where a call of CUDA's runtime fails. */
#define CUDA(call)                                                                          \
  do {                                                                                      \
    const cudaError_t error = (call);                                                       \
    if (error != cudaSuccess) {                                                             \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                                   \
    }                                                                                       \
  } while (0)

/* A copy on the device of what is on the host. */
static inline void *device_copy(const void *from, size_t bytes) {
  void *copy = NULL;
  CUDA(cudaMalloc(&copy, bytes));
  CUDA(cudaMemcpy(copy, from, bytes, cudaMemcpyHostToDevice));
  return copy;
}
#endif
