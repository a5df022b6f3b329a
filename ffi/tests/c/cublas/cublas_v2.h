/* What examples/cg.cpp takes of cuBLAS, so that it is compiled, linked and run where there is none, as far as it goes
 * without a GPU. */
#ifndef CUBLAS_V2_H
#define CUBLAS_V2_H
#include <driver_types.h>
#include <stdlib.h>

typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
typedef struct cublasContext *cublasHandle_t;

#define WITHOUT_CUBLAS(function, ...) \
  static inline cublasStatus_t function(__VA_ARGS__) { abort(); }
WITHOUT_CUBLAS(cublasCreate, cublasHandle_t *)
WITHOUT_CUBLAS(cublasDestroy, cublasHandle_t)
WITHOUT_CUBLAS(cublasSetStream, cublasHandle_t, cudaStream_t)
WITHOUT_CUBLAS(cublasDdot, cublasHandle_t, int, const double *, int, const double *, int, double *)
WITHOUT_CUBLAS(cublasDaxpy, cublasHandle_t, int, const double *, const double *, int, double *, int)
WITHOUT_CUBLAS(cublasDscal, cublasHandle_t, int, const double *, double *, int)
static inline const char *cublasGetStatusString(cublasStatus_t) { return "no cuBLAS"; }
#endif
