// The largest double, by compare-and-swap on its bits.
// launch: <<<4, 64>>>
// argument: x read-only f64 1000 random
// argument: y writable f64 1 value -2
// argument: size i32 value 1000
// expect: y max x
extern "C" __global__ void atomic_max_of_doubles(const double* x, double* y, int size) {
  double most = -2;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) most = fmax(most, x[i]);
  unsigned long long* place = reinterpret_cast<unsigned long long*>(y);
  unsigned long long seen = *reinterpret_cast<volatile unsigned long long*>(place);
  while (__longlong_as_double(seen) < most) {
    const unsigned long long before = atomicCAS(place, seen, __double_as_longlong(most));
    if (before == seen) break;
    seen = before;
  }
}
