// Sputnik (https://github.com/google-research/sputnik, Gale et al., Sparse GPU Kernels for Deep Learning, 2020) as an
// opponent. Only its header is used here; its sources are compiled beside this file:
//
//     nvcc -O3 -arch=sm_90 -shared -Xcompiler -fPIC -I SPUTNIK -I gpu/opponents -o libsputnik_opponent.so -x cu
//         SPUTNIK/sputnik/spmm/cuda_spmm.cu.cc gpu/opponents/sputnik.cu

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

#include "opponent.h"
#include "sputnik/spmm/cuda_spmm.h"

namespace {

struct Plan {
  sparserl_opponent_product product;
  // The rows by falling length, which its thread blocks take them in.
  int *row_order;
};

}  // namespace

extern "C" int32_t sparserl_opponent_interface(void) { return SPARSERL_OPPONENT_INTERFACE; }
extern "C" const char *sparserl_opponent_name(void) { return "Sputnik"; }
extern "C" const char *sparserl_opponent_version(void) { return "2020"; }

extern "C" int32_t sparserl_opponent_prepare(const sparserl_opponent_product *product, void *stream, void **plan,
                                             uint64_t *buffer_bytes) {
  if (product->columns == 0 || product->element_bits != 32) return SPARSERL_OPPONENT_NOT_APPLICABLE;
  const int32_t *offsets = product->host_row_offsets;
  std::vector<int> order(product->rows);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [offsets](int a, int b) {
    return offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b];
  });
  const size_t bytes = order.size() * sizeof(int);
  Plan *made = new Plan{*product, nullptr};
  cudaError_t error = cudaMalloc(&made->row_order, bytes);
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(made->row_order, order.data(), bytes, cudaMemcpyHostToDevice,
                            static_cast<cudaStream_t>(stream));
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess) {
    sparserl_opponent_release(made);
    // Never SPARSERL_OPPONENT_NOT_APPLICABLE.
    return 1000 + error;
  }
  *plan = made;
  *buffer_bytes = bytes;
  return SPARSERL_OPPONENT_READY;
}

extern "C" int32_t sparserl_opponent_enqueue(void *plan, void *stream) {
  const Plan &made = *static_cast<const Plan *>(plan);
  const sparserl_opponent_product &p = made.product;
  return sputnik::CudaSpmm(p.rows, p.cols, p.columns, p.nonzeros, made.row_order, static_cast<const float *>(p.values),
                           p.row_offsets, p.column_indices, static_cast<const float *>(p.input),
                           static_cast<float *>(p.output), static_cast<cudaStream_t>(stream));
}

extern "C" void sparserl_opponent_release(void *plan) {
  Plan *made = static_cast<Plan *>(plan);
  cudaFree(made->row_order);
  delete made;
}
