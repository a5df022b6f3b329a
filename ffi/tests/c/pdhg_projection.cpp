// What examples/pdhg_projection.cu has, so that examples/pdhg.cpp is linked and run beside cuSPARSE
// where there is no nvcc, as far as it goes without a GPU.
#include <cuda_runtime_api.h>

#include <cstdlib>

cudaError_t project_x(cudaStream_t, int, const double *, const double *, const double *,
                      const double *, const double *, double *, double *) {
  std::abort();
}

cudaError_t project_y(cudaStream_t, int, const double *, const double *, const double *,
                      double *) {
  std::abort();
}
