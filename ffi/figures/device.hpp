// The device: memory, and plans.
#ifndef FIGURES_DEVICE_HPP
#define FIGURES_DEVICE_HPP

#include <cuda_runtime_api.h>
#include <sparserl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "matrix.hpp"

inline void check(sparserl_status status) {
  if (status != SPARSERL_SUCCESS)
    fail(std::string(sparserl_status_text(status)) + ": " + sparserl_last_error());
}

inline void check(cudaError_t error) {
  if (error != cudaSuccess) fail(std::string("CUDA: ") + cudaGetErrorString(error));
}

// Seconds, by a clock that only goes forward.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// An array in device memory.
template <typename T>
class Array {
 public:
  // Of what the memory happens to hold.
  explicit Array(std::size_t length) : length_(length) {
    // One element more, because a pointer to nothing is NULL.
    check(cudaMalloc(reinterpret_cast<void **>(&data_), (length_ + 1) * sizeof(T)));
  }
  template <typename From>
  explicit Array(const std::vector<From> &from) : Array(from.size()) {
    put(from);
  }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { cudaFree(data_); }

  T *get() const { return data_; }
  template <typename From>
  void put(const std::vector<From> &from) {
    const std::vector<T> converted(from.begin(), from.end());
    check(cudaMemcpy(data_, converted.data(), length_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> host() const {
    std::vector<T> copy(length_);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(copy.data(), data_, length_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T *data_ = nullptr;
  std::size_t length_;
};

// What a plan is asked for, as options of the API.
struct Wishes {
  std::uint64_t expected_calls = 0;
  std::int32_t measure = 0, values_variable = 0, transpose_too = 0, check_pointers = 1;
  std::string_view epilogue = {}, user = {};
};

enum class Search { Awaited, InBackground };

// A plan, and how long it took.
template <typename T>
class Plan {
 public:
  Plan(sparserl_context *context, const Matrix &a, const Wishes &wishes,
       Search search = Search::Awaited) {
    const std::vector<T> values(a.values.begin(), a.values.end());
    sparserl_csr csr{};
    csr.rows = a.rows;
    csr.cols = a.cols;
    csr.nnz = a.nnz();
    csr.row_offsets = a.offsets.data();
    csr.column_indices = a.columns.data();
    csr.values = values.data();
    csr.value_type = sizeof(T) == 4 ? SPARSERL_F32 : SPARSERL_F64;
    sparserl_matrix *matrix = nullptr;
    sparserl_options *options = nullptr;
    check(sparserl_options_create(&options));
    set(options, SPARSERL_OPTION_EXPECTED_CALLS, wishes.expected_calls);
    set(options, SPARSERL_OPTION_MEASURE, wishes.measure);
    set(options, SPARSERL_OPTION_VALUES_VARIABLE, wishes.values_variable);
    set(options, SPARSERL_OPTION_TRANSPOSE_TOO, wishes.transpose_too);
    set(options, SPARSERL_OPTION_CHECK_POINTERS, wishes.check_pointers);
    if (!wishes.epilogue.empty()) {
      set(options, SPARSERL_OPTION_EPILOGUE_SOURCE, wishes.epilogue);
      set(options, SPARSERL_OPTION_EPILOGUE_USER, wishes.user);
    }
    double start = now();
    check(sparserl_matrix_create(context, &csr, &matrix));
    matrix_seconds = now() - start;
    start = now();
    check(sparserl_plan_create(context, matrix, options, &plan_));
    create_seconds = now() - start;
    if (search == Search::Awaited) wait();
    ready_seconds = now() - start;
    check(sparserl_options_destroy(options));
    check(sparserl_matrix_destroy(matrix));
  }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;
  // Not checked: another failure may be on its way.
  ~Plan() { sparserl_plan_destroy(plan_); }

  // z = alpha op(A) x + beta z
  void multiply(cudaStream_t stream, std::int32_t op, T alpha, const T *x, T beta, T *z,
                const void *user = nullptr) const {
    check(sparserl_execute_op(plan_, op, stream, &alpha, x, &beta, z, z, user));
  }
  // Until nothing better is searched for.
  void wait() const { check(sparserl_plan_wait(plan_)); }
  void update(cudaStream_t stream, const T *values, std::int32_t location) const {
    check(sparserl_plan_update_values(plan_, stream, values, location));
  }
  // Negative where it is not known.
  double number(std::int32_t op, std::int32_t key) const {
    double value = -1;
    const sparserl_status status = sparserl_plan_number(plan_, op, key, &value);
    if (status != SPARSERL_NOT_KNOWN) check(status);
    return value;
  }
  std::string text(std::int32_t op, std::int32_t key) const {
    std::size_t length = 0;
    check(sparserl_plan_text(plan_, op, key, nullptr, 0, &length));
    std::string found(length + 1, '\0');
    check(sparserl_plan_text(plan_, op, key, found.data(), found.size(), &length));
    found.resize(length);
    return found;
  }

  // Until the matrix was copied; until the first product could be asked for; until the search, if it
  // is awaited, was over.
  double matrix_seconds = 0, create_seconds = 0, ready_seconds = 0;

 private:
  template <typename Value>
  static void set(sparserl_options *options, std::int32_t key, Value value) {
    if constexpr (std::is_same_v<Value, std::string_view>)
      check(sparserl_options_set(options, key, value.data(), value.size()));
    else
      check(sparserl_options_set(options, key, &value, sizeof value));
  }

  sparserl_plan *plan_ = nullptr;
};

#endif
