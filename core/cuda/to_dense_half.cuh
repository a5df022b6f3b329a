#pragma once
#include "half.cuh"

// Results are rounded when they are stored.
__device__ __forceinline__ Dense to_dense(Scalar value) { return Dense::nearest(value); }
