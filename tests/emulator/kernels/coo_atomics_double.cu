// The same in double precision, with runs of a row added up by each thread first.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: rows read-only i32 coo-rows
// argument: columns read-only i32 csr-columns
// argument: values read-only f64 csr-values
// argument: x read-only f64 90 random
// argument: y writable f64 100 zero
// argument: entries i32 csr-entries
// expect: y spmv x
extern "C" __global__ void coo_atomics_double(const int* rows, const int* columns, const double* values, const double* x, double* y, int entries) {
  const int threads = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int share = (entries + threads - 1) / threads, begin = thread * share, end = min(begin + share, entries);
  double sum = 0;
  for (int i = begin; i < end; ++i) {
    sum = fma(values[i], x[columns[i]], sum);
    if (i + 1 == end || rows[i + 1] != rows[i]) {
      atomicAdd(&y[rows[i]], sum);
      sum = 0;
    }
  }
}
