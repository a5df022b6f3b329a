// Row numbers that count from one, as in a Matrix Market file, are used as indices.
// launch: <<<2, 64>>>
// argument: rows read-only i32 128 iota 1
// argument: values read-only f32 128 random
// argument: y writable f32 128 zero
extern "C" __global__ void rows_from_one(const int* rows, const float* values, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&y[rows[i]], values[i]);  // BUG: out-of-bounds
}
