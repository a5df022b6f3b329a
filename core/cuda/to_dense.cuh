#pragma once
#include "types.cuh"

// Results are stored as they are.
__device__ __forceinline__ Dense to_dense(Scalar value) { return value; }
