// Products by cuSPARSE, to compare with: cg.cpp and pdhg.cpp take them where they are compiled with
// -DWITH_CUSPARSE. They are cusparseSpMV() after cusparseSpMV_preprocess(), which takes CUDA 12.4,
// and cusparseSpMVOp() in versions that have it.
#ifndef EXAMPLES_CUSPARSE_HPP
#define EXAMPLES_CUSPARSE_HPP

// SpMVOp is declared behind it.
#define CUSPARSE_ENABLE_EXPERIMENTAL_API
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <sparserl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

namespace cusparse {

inline void check(cusparseStatus_t status) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuSPARSE: %s\n", cusparseGetErrorString(status));
  std::exit(EXIT_FAILURE);
}

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    check(cusparseCreate(&handle_));
    check(cusparseSetStream(handle_, stream));
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { cusparseDestroy(handle_); }

  operator cusparseHandle_t() const { return handle_; }
  // The version that is running, as CUSPARSE_VERSION has it.
  std::string name() const {
    int version = 0;
    check(cusparseGetVersion(handle_, &version));
    return "cuSPARSE " + std::to_string(version);
  }

 private:
  cusparseHandle_t handle_ = nullptr;
};

struct Free {
  void operator()(void *data) const { cudaFree(data); }
};

// An array in device memory.
template <typename T>
using Array = std::unique_ptr<T[], Free>;

template <typename T>
Array<T> array(std::size_t length) {
  void *data = nullptr;
  // A pointer to nothing would be NULL.
  check(cudaMalloc(&data, std::max<std::size_t>(length * sizeof(T), 1)));
  return Array<T>(static_cast<T *>(data));
}

// A matrix in device memory, copied from the host's: SPARSERL_F64, with indices of 32 bits.
struct Matrix {
  Matrix(std::int64_t row_count, std::int64_t column_count, std::int64_t entries)
      : rows(row_count), cols(column_count), nnz(entries) {}

  explicit Matrix(const sparserl_csr &csr) : Matrix(csr.rows, csr.cols, csr.nnz) {
    const auto copy = [](auto &to, const void *from, std::int64_t length) {
      const std::size_t bytes = static_cast<std::size_t>(length) * sizeof to[0];
      check(cudaMemcpy(to.get(), from, bytes, cudaMemcpyHostToDevice));
    };
    copy(offsets, csr.row_offsets, rows + 1);
    copy(columns, csr.column_indices, nnz);
    copy(values, csr.values, nnz);
  }

  // The transpose, made on the device.
  Matrix transposed(cusparseHandle_t handle) const {
    Matrix made(cols, rows, nnz);
    const int m = static_cast<int>(rows), n = static_cast<int>(cols), k = static_cast<int>(nnz);
    std::size_t bytes = 0;
    check(cusparseCsr2cscEx2_bufferSize(
        handle, m, n, k, values.get(), offsets.get(), columns.get(), made.values.get(),
        made.offsets.get(), made.columns.get(), CUDA_R_64F, CUSPARSE_ACTION_NUMERIC,
        CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
    const auto buffer = array<unsigned char>(bytes);
    check(cusparseCsr2cscEx2(handle, m, n, k, values.get(), offsets.get(), columns.get(),
                             made.values.get(), made.offsets.get(), made.columns.get(), CUDA_R_64F,
                             CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                             CUSPARSE_CSR2CSC_ALG_DEFAULT, buffer.get()));
    check(cudaDeviceSynchronize());
    return made;
  }

  std::int64_t rows, cols, nnz;
  Array<std::int32_t> offsets = array<std::int32_t>(static_cast<std::size_t>(rows) + 1);
  Array<std::int32_t> columns = array<std::int32_t>(static_cast<std::size_t>(nnz));
  Array<double> values = array<double>(static_cast<std::size_t>(nnz));
};

// z = alpha A x, prepared for these vectors.
class Product {
 public:
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;
  virtual ~Product() {
    cusparseDestroySpMat(a_);
    cusparseDestroyDnVec(x_);
    cusparseDestroyDnVec(z_);
  }

  // In the order of the handle's stream; it may be captured.
  virtual void multiply() const = 0;

 protected:
  Product(cusparseHandle_t handle, const Matrix &a, double alpha, const double *x, double *z)
      : handle_(handle), alpha_(alpha) {
    check(cusparseCreateCsr(&a_, a.rows, a.cols, a.nnz, a.offsets.get(), a.columns.get(),
                            a.values.get(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    check(cusparseCreateDnVec(&x_, a.cols, const_cast<double *>(x), CUDA_R_64F));
    check(cusparseCreateDnVec(&z_, a.rows, z, CUDA_R_64F));
  }

  static constexpr cusparseOperation_t OP = CUSPARSE_OPERATION_NON_TRANSPOSE;

  cusparseHandle_t handle_;
  double alpha_, beta_ = 0;
  cusparseSpMatDescr_t a_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, z_ = nullptr;
  Array<unsigned char> buffer_;
};

template <cusparseSpMVAlg_t ALGORITHM>
class SpMV final : public Product {
 public:
  SpMV(cusparseHandle_t handle, const Matrix &a, double alpha, const double *x, double *z)
      : Product(handle, a, alpha, x, z) {
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle_, OP, &alpha_, a_, x_, &beta_, z_, CUDA_R_64F, ALGORITHM,
                                  &bytes));
    buffer_ = array<unsigned char>(bytes);
    check(cusparseSpMV_preprocess(handle_, OP, &alpha_, a_, x_, &beta_, z_, CUDA_R_64F, ALGORITHM,
                                  buffer_.get()));
  }

  void multiply() const override {
    check(cusparseSpMV(handle_, OP, &alpha_, a_, x_, &beta_, z_, CUDA_R_64F, ALGORITHM,
                       buffer_.get()));
  }
};

// The versions whose SpMVOp takes an algorithm.
#if CUSPARSE_VERSION >= 12801
#define EXAMPLES_HAVE_SPMVOP

template <cusparseSpMVOpAlg_t ALGORITHM>
class SpMVOp final : public Product {
 public:
  SpMVOp(cusparseHandle_t handle, const Matrix &a, double alpha, const double *x, double *z)
      : Product(handle, a, alpha, x, z) {
    std::size_t bytes = 0;
    check(cusparseSpMVOp_bufferSize(handle_, OP, a_, x_, z_, z_, CUDA_R_64F, ALGORITHM, &bytes));
    buffer_ = array<unsigned char>(bytes);
    check(cusparseSpMVOp_createDescr(handle_, &description_, OP, a_, x_, z_, z_, CUDA_R_64F,
                                     ALGORITHM, buffer_.get()));
    check(cusparseSpMVOp_createPlan(handle_, description_, &plan_, nullptr, 0));
  }
  ~SpMVOp() override {
    cusparseSpMVOp_destroyPlan(plan_);
    cusparseSpMVOp_destroyDescr(description_);
  }

  void multiply() const override {
    check(cusparseSpMVOp(handle_, plan_, &alpha_, &beta_, x_, z_, z_));
  }

 private:
  cusparseSpMVOpDescr_t description_ = nullptr;
  cusparseSpMVOpPlan_t plan_ = nullptr;
};
#endif

template <typename Kind>
std::unique_ptr<Product> prepare(cusparseHandle_t handle, const Matrix &a, double alpha,
                                 const double *x, double *z) {
  return std::make_unique<Kind>(handle, a, alpha, x, z);
}

// A way to a product.
struct Way {
  const char *name;
  std::unique_ptr<Product> (*prepare)(cusparseHandle_t, const Matrix &, double, const double *,
                                      double *);
};

// All that this version has. Which is fastest depends on the matrix.
constexpr Way WAYS[] = {
    {"SpMV", prepare<SpMV<CUSPARSE_SPMV_ALG_DEFAULT>>},
    {"SpMV by CSR_ALG2", prepare<SpMV<CUSPARSE_SPMV_CSR_ALG2>>},
#ifdef EXAMPLES_HAVE_SPMVOP
    {"SpMVOp by ALG1", prepare<SpMVOp<CUSPARSE_SPMVOP_ALG1>>},
    {"SpMVOp by ALG2", prepare<SpMVOp<CUSPARSE_SPMVOP_ALG2>>},
#endif
};

// Solves by each way, and says how SparseRL's time compares to that of the fastest; false if a
// solution is wrong, or another than SparseRL's.
template <typename Solution, typename Solve>
bool compare(const Solution &ours, const Solve &solve) {
  double seconds = std::numeric_limits<double>::infinity(), loop = seconds;
  double norm = 0, furthest = 0;
  bool is_right = ours.is_right;
  for (const double number : ours.x) norm = std::max(norm, std::abs(number));
  for (const Way &way : WAYS) {
    const Solution theirs = solve(way);
    seconds = std::min(seconds, theirs.planning + theirs.loop);
    loop = std::min(loop, theirs.loop);
    is_right &= theirs.is_right;
    for (std::size_t i = 0; i < ours.x.size(); ++i)
      furthest = std::max(furthest, std::abs(theirs.x[i] - ours.x[i]) / norm);
  }
  std::printf("SparseRL takes %.2f of the time of the fastest of cuSPARSE, in the loop alone %.2f; "
              "solutions differ by %.1e\n",
              (ours.planning + ours.loop) / seconds, ours.loop / loop, furthest);
  return is_right && furthest <= 1e-6;
}

}  // namespace cusparse

#endif
