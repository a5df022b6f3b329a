// What pdhg.cpp runs behind products of cuSPARSE: the same steps as its epilogues, as kernels of
// their own. It is the only part that needs nvcc.
#include <cuda_runtime.h>

namespace {

__global__ void project_x_kernel(int n, const double *product, const double *step,
                                 const double *cost, const double *lower, const double *upper,
                                 double *x, double *extrapolated) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const double old = x[i], moved = old - *step * (cost[i] - product[i]);
  const double projected = fmin(fmax(moved, lower[i]), upper[i]);
  extrapolated[i] = 2 * projected - old;
  x[i] = projected;
}

__global__ void project_y_kernel(int n, const double *product, const double *step,
                                 const double *need, double *y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = fmax(y[i] + *step * (need[i] - product[i]), 0.0);
}

constexpr int THREADS = 256;

int blocks(int n) { return (n + THREADS - 1) / THREADS; }

}  // namespace

cudaError_t project_x(cudaStream_t stream, int n, const double *product, const double *step,
                      const double *cost, const double *lower, const double *upper, double *x,
                      double *extrapolated) {
  project_x_kernel<<<blocks(n), THREADS, 0, stream>>>(n, product, step, cost, lower, upper, x,
                                                      extrapolated);
  return cudaGetLastError();
}

cudaError_t project_y(cudaStream_t stream, int n, const double *product, const double *step,
                      const double *need, double *y) {
  project_y_kernel<<<blocks(n), THREADS, 0, stream>>>(n, product, step, need, y);
  return cudaGetLastError();
}
