// A thread for each entry, with atomics.
// launch: <<<6, 128>>>
// matrix: rows=100 columns=90 mean=5
// argument: rows read-only i32 coo-rows
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y writable f32 100 zero
// argument: entries i32 csr-entries
// expect: y spmv x
extern "C" __global__ void coo_atomics(const int* rows, const int* columns, const float* values, const float* x, float* y, int entries) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < entries; i += gridDim.x * blockDim.x) {
    atomicAdd(&y[rows[i]], values[i] * x[columns[i]]);
  }
}
