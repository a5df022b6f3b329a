// What pdhg.cpp runs behind a product of cuSPARSE: the same step as its epilogue, as a kernel of its
// own. It is the only part that needs nvcc.
#include <cuda_runtime.h>

namespace {

__global__ void project_kernel(int n, const double *product, const double *step,
                               const double *shift, const double *lower, const double *upper,
                               double *z, double *extrapolated) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const double old = z[i], moved = old + *step * (product[i] + shift[i]);
  const double projected = fmin(fmax(moved, lower[i]), upper[i]);
  extrapolated[i] = 2 * projected - old;
  z[i] = projected;
}

}  // namespace

cudaError_t project(cudaStream_t stream, int n, const double *product, const double *step,
                    const double *shift, const double *lower, const double *upper, double *z,
                    double *extrapolated) {
  constexpr int THREADS = 256;
  project_kernel<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(
      n, product, step, shift, lower, upper, z, extrapolated);
  return cudaGetLastError();
}
