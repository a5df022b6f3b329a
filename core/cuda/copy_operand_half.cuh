#pragma once
#include "types.cuh"

// Copies an element of x to shared memory, as a number of the sums.
__device__ __forceinline__ void copy_operand(Scalar* to, const Dense* from) { *to = *from; }
