// cuSPARSE: its matrices, and all its ways to a product.
#ifndef FIGURES_CUSPARSE_HPP
#define FIGURES_CUSPARSE_HPP

// SpMVOp is declared behind it.
#define CUSPARSE_ENABLE_EXPERIMENTAL_API
#include <cusparse.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device.hpp"

inline void check(cusparseStatus_t status) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    fail(std::string("cuSPARSE: ") + cusparseGetErrorString(status));
}

template <typename T>
constexpr cudaDataType CUSPARSE_TYPE = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

// A matrix in device memory as cuSPARSE takes it.
template <typename T>
struct Csr {
  explicit Csr(const Matrix &a)
      : rows(a.rows), cols(a.cols), nnz(a.nnz()), offsets(a.offsets), columns(a.columns),
        values(a.values) {}

  // The transpose, made on the device.
  std::unique_ptr<Csr> transposed(cusparseHandle_t handle) const {
    std::unique_ptr<Csr> made(new Csr(cols, rows, nnz));
    std::size_t bytes = 0;
    check(cusparseCsr2cscEx2_bufferSize(
        handle, int(rows), int(cols), int(nnz), values.get(), offsets.get(), columns.get(),
        made->values.get(), made->offsets.get(), made->columns.get(), CUSPARSE_TYPE<T>,
        CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
    const Array<unsigned char> buffer(bytes);
    check(cusparseCsr2cscEx2(handle, int(rows), int(cols), int(nnz), values.get(), offsets.get(),
                             columns.get(), made->values.get(), made->offsets.get(),
                             made->columns.get(), CUSPARSE_TYPE<T>, CUSPARSE_ACTION_NUMERIC,
                             CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, buffer.get()));
    check(cudaDeviceSynchronize());
    return made;
  }

  std::int64_t rows, cols, nnz;
  Array<std::int32_t> offsets, columns;
  Array<T> values;

 private:
  Csr(std::int64_t rows, std::int64_t cols, std::int64_t nnz)
      : rows(rows), cols(cols), nnz(nnz), offsets(std::size_t(rows) + 1), columns(std::size_t(nnz)),
        values(std::size_t(nnz)) {}
};

// What z = alpha op(A) x + beta z is computed from. The vectors stay where they are.
template <typename T>
struct Operands {
  const Csr<T> &a;
  bool is_transposed;
  T alpha;
  const T *x;
  T beta;
  T *z;
};

// A product that was prepared.
template <typename T>
class Product {
 public:
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;
  virtual ~Product() {
    cusparseDestroySpMat(matrix_);
    cusparseDestroyDnVec(x_);
    cusparseDestroyDnVec(z_);
  }

  // In the order of the handle's stream.
  virtual void multiply() const = 0;

  double preprocess_seconds = 0;

 protected:
  Product(cusparseHandle_t handle, const Operands<T> &operands)
      : handle_(handle), alpha_(operands.alpha), beta_(operands.beta),
        op_(operands.is_transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE) {
    const Csr<T> &a = operands.a;
    const bool turned = operands.is_transposed;
    // Each has a descriptor of its own: preprocessing leaves its results there.
    check(cusparseCreateCsr(&matrix_, a.rows, a.cols, a.nnz, a.offsets.get(), a.columns.get(),
                            a.values.get(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, TYPE));
    check(cusparseCreateDnVec(&x_, turned ? a.rows : a.cols, const_cast<T *>(operands.x), TYPE));
    check(cusparseCreateDnVec(&z_, turned ? a.cols : a.rows, operands.z, TYPE));
  }

  static constexpr cudaDataType TYPE = CUSPARSE_TYPE<T>;

  cusparseHandle_t handle_;
  T alpha_, beta_;
  cusparseOperation_t op_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, z_ = nullptr;
};

// By cusparseSpMV.
template <typename T>
class SpMV final : public Product<T> {
 public:
  SpMV(cusparseHandle_t handle, const Operands<T> &operands, cusparseSpMVAlg_t algorithm)
      : Product<T>(handle, operands), algorithm_(algorithm) {
    const double start = now();
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle, this->op_, &this->alpha_, this->matrix_, this->x_,
                                  &this->beta_, this->z_, this->TYPE, algorithm_, &bytes));
    buffer_ = std::make_unique<Array<unsigned char>>(bytes);
    check(cusparseSpMV_preprocess(handle, this->op_, &this->alpha_, this->matrix_, this->x_,
                                  &this->beta_, this->z_, this->TYPE, algorithm_, buffer_->get()));
    check(cudaDeviceSynchronize());
    this->preprocess_seconds = now() - start;
  }

  void multiply() const override {
    check(cusparseSpMV(this->handle_, this->op_, &this->alpha_, this->matrix_, this->x_, &this->beta_,
                       this->z_, this->TYPE, algorithm_, buffer_->get()));
  }

 private:
  cusparseSpMVAlg_t algorithm_;
  std::unique_ptr<Array<unsigned char>> buffer_;
};

// The versions whose SpMVOp takes an algorithm.
#if CUSPARSE_VERSION >= 12801
#define FIGURES_HAVE_SPMVOP

// By cusparseSpMVOp, which does not transpose.
template <typename T>
class SpMVOp final : public Product<T> {
 public:
  SpMVOp(cusparseHandle_t handle, const Operands<T> &operands, cusparseSpMVOpAlg_t algorithm)
      : Product<T>(handle, operands) {
    const double start = now();
    std::size_t bytes = 0;
    check(cusparseSpMVOp_bufferSize(handle, this->op_, this->matrix_, this->x_, this->z_, this->z_,
                                    this->TYPE, algorithm, &bytes));
    buffer_ = std::make_unique<Array<unsigned char>>(bytes);
    check(cusparseSpMVOp_createDescr(handle, &description_, this->op_, this->matrix_, this->x_,
                                     this->z_, this->z_, this->TYPE, algorithm, buffer_->get()));
    check(cusparseSpMVOp_createPlan(handle, description_, &plan_, nullptr, 0));
    check(cudaDeviceSynchronize());
    this->preprocess_seconds = now() - start;
  }
  ~SpMVOp() override {
    cusparseSpMVOp_destroyPlan(plan_);
    cusparseSpMVOp_destroyDescr(description_);
  }

  void multiply() const override {
    check(cusparseSpMVOp(this->handle_, plan_, &this->alpha_, &this->beta_, this->x_, this->z_,
                         this->z_));
  }

 private:
  std::unique_ptr<Array<unsigned char>> buffer_;
  cusparseSpMVOpDescr_t description_ = nullptr;
  cusparseSpMVOpPlan_t plan_ = nullptr;
};
#endif

// A way to a product, by the name that it has in the output.
template <typename T>
struct Way {
  std::string name;
  std::function<std::shared_ptr<Product<T>>(const Operands<T> &)> prepare;
};

// All of this version for what is not transposed.
template <typename T>
std::vector<Way<T>> ways(cusparseHandle_t handle) {
  const auto spmv = [handle](cusparseSpMVAlg_t algorithm) {
    return [=](const Operands<T> &operands) {
      return std::make_shared<SpMV<T>>(handle, operands, algorithm);
    };
  };
  std::vector<Way<T>> all{{"cusparse_default", spmv(CUSPARSE_SPMV_ALG_DEFAULT)},
                          {"cusparse_alg2", spmv(CUSPARSE_SPMV_CSR_ALG2)}};
#ifdef FIGURES_HAVE_SPMVOP
  const auto op = [handle](cusparseSpMVOpAlg_t algorithm) {
    return [=](const Operands<T> &operands) {
      return std::make_shared<SpMVOp<T>>(handle, operands, algorithm);
    };
  };
  all.push_back({"cusparse_op_alg1", op(CUSPARSE_SPMVOP_ALG1)});
  all.push_back({"cusparse_op_alg2", op(CUSPARSE_SPMVOP_ALG2)});
#endif
  return all;
}

#endif
