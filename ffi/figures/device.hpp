// The device: memory, plans, cuSPARSE, and how calls of several libraries are timed in turn.
#ifndef FIGURES_DEVICE_HPP
#define FIGURES_DEVICE_HPP

#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <sparserl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

inline void check(cusparseStatus_t status) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    fail(std::string("cuSPARSE: ") + cusparseGetErrorString(status));
}

// Seconds, by a clock that only goes forward.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// An array in device memory.
template <typename T>
class Array {
 public:
  template <typename From>
  explicit Array(const std::vector<From> &from) : length_(from.size()) {
    // One element more, because a pointer to nothing is NULL.
    check(cudaMalloc(reinterpret_cast<void **>(&data_), (length_ + 1) * sizeof(T)));
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

// A plan, and how long it took.
template <typename T>
class Plan {
 public:
  // Returns once nothing better is searched for.
  Plan(sparserl_context *context, const Matrix &a, const Wishes &wishes) {
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
    check(sparserl_plan_wait(plan_));
    ready_seconds = now() - start;
    check(sparserl_options_destroy(options));
    check(sparserl_matrix_destroy(matrix));
  }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;
  ~Plan() { check(sparserl_plan_destroy(plan_)); }

  // z = alpha op(A) x + beta z
  void multiply(cudaStream_t stream, std::int32_t op, T alpha, const T *x, T beta, T *z,
                const void *user = nullptr) const {
    check(sparserl_execute_op(plan_, op, stream, &alpha, x, &beta, z, z, user));
  }
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

  // Until the matrix was copied; until the first product could be asked for; until the search was
  // over.
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

// A matrix in device memory as cuSPARSE takes it.
template <typename T>
struct Csr {
  explicit Csr(const Matrix &a)
      : rows(a.rows), cols(a.cols), offsets(a.offsets), columns(a.columns), values(a.values),
        nnz(a.nnz()) {}
  std::int64_t rows, cols;
  Array<std::int32_t> offsets, columns;
  Array<T> values;
  std::int64_t nnz;
};

// z = alpha op(A) x + beta z by cuSPARSE, on vectors that stay.
template <typename T>
class Cusparse {
 public:
  Cusparse(cusparseHandle_t handle, const Csr<T> &a, cusparseSpMVAlg_t algorithm, bool transposed,
           T alpha, const T *x, T beta, T *z)
      : handle_(handle), algorithm_(algorithm), alpha_(alpha), beta_(beta),
        op_(transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE) {
    // Each has a descriptor of its own: preprocessing leaves its results there.
    check(cusparseCreateCsr(&matrix_, a.rows, a.cols, a.nnz, a.offsets.get(), a.columns.get(),
                            a.values.get(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, TYPE));
    check(cusparseCreateDnVec(&x_, transposed ? a.rows : a.cols, const_cast<T *>(x), TYPE));
    check(cusparseCreateDnVec(&z_, transposed ? a.cols : a.rows, z, TYPE));
    std::size_t bytes = 0;
    check(cusparseSpMV_bufferSize(handle_, op_, &alpha_, matrix_, x_, &beta_, z_, TYPE, algorithm_,
                                  &bytes));
    check(cudaMalloc(&buffer_, std::max<std::size_t>(bytes, 16)));
    const double start = now();
    check(cusparseSpMV_preprocess(handle_, op_, &alpha_, matrix_, x_, &beta_, z_, TYPE, algorithm_,
                                  buffer_));
    check(cudaDeviceSynchronize());
    preprocess_seconds = now() - start;
  }
  Cusparse(const Cusparse &) = delete;
  Cusparse &operator=(const Cusparse &) = delete;
  ~Cusparse() {
    cusparseDestroySpMat(matrix_);
    cusparseDestroyDnVec(x_);
    cusparseDestroyDnVec(z_);
    cudaFree(buffer_);
  }

  // In the order of the handle's stream.
  void multiply() const {
    check(cusparseSpMV(handle_, op_, &alpha_, matrix_, x_, &beta_, z_, TYPE, algorithm_, buffer_));
  }

  double preprocess_seconds = 0;

 private:
  static constexpr cudaDataType TYPE = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

  cusparseHandle_t handle_;
  cusparseSpMVAlg_t algorithm_;
  T alpha_, beta_;
  cusparseOperation_t op_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, z_ = nullptr;
  void *buffer_ = nullptr;
};

// Something to be timed, by the name that it has in the output.
struct Contender {
  std::string name;
  std::function<void()> call;
  std::vector<double> samples = {};
};

inline double median(std::vector<double> samples) {
  if (samples.empty()) return -1;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

// Has each contender called in turn, so that all see the same clocks; begins with another one in
// each round.
inline void in_turn(std::vector<Contender> &contenders, int rounds,
                    const std::function<void(Contender &)> &sample) {
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      sample(contenders[(i + std::size_t(round)) % contenders.size()]);
}

// GPU time, in microseconds a call, of `calls` calls in a stream: a sample a round.
inline void race(cudaStream_t stream, std::vector<Contender> &contenders, int rounds, int calls) {
  cudaEvent_t events[2];
  for (cudaEvent_t &event : events) check(cudaEventCreate(&event));
  for (Contender &contender : contenders)
    for (int i = 0; i < std::min(calls, 20); ++i) contender.call();
  in_turn(contenders, rounds, [&](Contender &contender) {
    check(cudaStreamSynchronize(stream));
    check(cudaEventRecord(events[0], stream));
    for (int i = 0; i < calls; ++i) contender.call();
    check(cudaEventRecord(events[1], stream));
    check(cudaEventSynchronize(events[1]));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    contender.samples.push_back(1e3 * double(milliseconds) / calls);
  });
  for (const cudaEvent_t event : events) check(cudaEventDestroy(event));
}

// The same of calls in a CUDA graph of `length` of them, which is launched `launches` times: what the
// GPU takes where the host is out of the way.
inline void race_in_graphs(cudaStream_t stream, const std::vector<Contender> &contenders, int rounds,
                           int length, int launches, std::vector<Contender> &results) {
  std::vector<cudaGraphExec_t> graphs;
  for (const Contender &contender : contenders) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < length; ++i) contender.call();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphDestroy(graph));
    graphs.push_back(executable);
    const auto launch = [executable, stream] { check(cudaGraphLaunch(executable, stream)); };
    results.push_back({contender.name, launch});
  }
  race(stream, results, rounds, launches);
  for (Contender &result : results)
    for (double &sample : result.samples) sample /= length;
  for (const cudaGraphExec_t graph : graphs) check(cudaGraphExecDestroy(graph));
}

#endif
