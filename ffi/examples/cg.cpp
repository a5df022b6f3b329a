// Conjugate gradients for a Poisson problem, with SparseRL's product and cuBLAS for the rest.
//
//   c++ -std=c++20 cg.cpp $(pkg-config --cflags --libs sparserl) -lcublas -lcudart -o cg && ./cg
//
// With -DWITH_CUSPARSE and -lcusparse the same loop then runs with each of cuSPARSE's products, for
// as many iterations, and times are compared from the matrix in the host's memory on.
//
// Without a GPU it says which kernel was chosen, and solves nothing.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <sparserl.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef WITH_CUSPARSE
#include "cusparse.hpp"
#endif

namespace {

void check(sparserl_status status) {
  if (status == SPARSERL_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", sparserl_status_text(status), sparserl_last_error());
  std::exit(EXIT_FAILURE);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLAS: %s\n", cublasGetStatusString(status));
  std::exit(EXIT_FAILURE);
}

// Seconds, by a clock that only goes forward.
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A vector in device memory.
struct Vector {
  double *data = nullptr;
  explicit Vector(const std::vector<double> &from) {
    check(cudaMalloc(reinterpret_cast<void **>(&data), from.size() * sizeof(double)));
    put(from);
  }
  Vector(const Vector &) = delete;
  Vector &operator=(const Vector &) = delete;
  ~Vector() { cudaFree(data); }

  void put(const std::vector<double> &from) {
    check(cudaMemcpy(data, from.data(), from.size() * sizeof(double), cudaMemcpyHostToDevice));
  }
  std::vector<double> host(int length) const {
    std::vector<double> copy(length);
    check(cudaMemcpy(copy.data(), data, length * sizeof(double), cudaMemcpyDeviceToHost));
    return copy;
  }
};

// The five-point Laplacian on a square.
constexpr int SIDE = 400, N = SIDE * SIDE;
// Iterations that there are about, for the plan to reckon with, and at most.
constexpr int EXPECTED = 2 * SIDE, MOST = 5 * SIDE;
const std::vector<double> ZEROS(N, 0), ONES(N, 1);

struct Poisson {
  std::vector<std::int32_t> offsets = {0}, columns;
  std::vector<double> values;

  Poisson() {
    const auto put = [&](bool there, int column, double value) {
      if (!there) return;
      columns.push_back(column);
      values.push_back(value);
    };
    for (int row = 0; row < N; ++row) {
      const int i = row / SIDE, j = row % SIDE;
      put(i > 0, row - SIDE, -1);
      put(j > 0, row - 1, -1);
      put(true, row, 4);
      put(j + 1 < SIDE, row + 1, -1);
      put(i + 1 < SIDE, row + SIDE, -1);
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }

  sparserl_csr csr() const {
    sparserl_csr csr{};
    csr.rows = csr.cols = N;
    csr.nnz = offsets[N];
    csr.row_offsets = offsets.data();
    csr.column_indices = columns.data();
    csr.values = values.data();
    csr.value_type = SPARSERL_F64;
    return csr;
  }

  // The norm of 1 - A x, by the host: no library is its own judge.
  double residual(const std::vector<double> &x) const {
    double squared_norm = 0;
    for (int row = 0; row < N; ++row) {
      double left = 1;
      for (std::int32_t k = offsets[row]; k < offsets[row + 1]; ++k)
        left -= values[k] * x[columns[k]];
      squared_norm += left * left;
    }
    return std::sqrt(squared_norm);
  }
};

// A x = 1 from x = 0 on, with any product q = A p.
class Cg {
 public:
  Cg() {
    check(cudaStreamCreate(&stream));
    check(cublasCreate(&blas_));
    check(cublasSetStream(blas_, stream));
    // cuBLAS loads its kernels when they are first called, which is no part of what is timed.
    iterate([] {}, 1, 0);
  }
  ~Cg() {
    cublasDestroy(blas_);
    cudaStreamDestroy(stream);
  }

  void restart() {
    x.put(ZEROS);
    r.put(ONES);
    p.put(ONES);
  }

  // Until r is small, by its squared norm; gives the number of iterations.
  template <typename Product>
  int iterate(const Product &product, int most, double small) {
    const double one = 1;
    double squared_norm = 0;
    int iteration = 0;
    check(cublasDdot(blas_, N, r.data, 1, r.data, 1, &squared_norm));
    for (; iteration < most && squared_norm > small; ++iteration) {
      product();
      double curvature = 0;
      check(cublasDdot(blas_, N, p.data, 1, q.data, 1, &curvature));
      const double step = squared_norm / curvature, back = -step;
      check(cublasDaxpy(blas_, N, &step, p.data, 1, x.data, 1));
      check(cublasDaxpy(blas_, N, &back, q.data, 1, r.data, 1));
      double next = 0;
      check(cublasDdot(blas_, N, r.data, 1, r.data, 1, &next));
      const double share = next / squared_norm;
      check(cublasDscal(blas_, N, &share, p.data, 1));
      check(cublasDaxpy(blas_, N, &one, r.data, 1, p.data, 1));
      squared_norm = next;
    }
    check(cudaStreamSynchronize(stream));
    return iteration;
  }

  cudaStream_t stream = nullptr;
  Vector x{ZEROS}, r{ONES}, p{ONES}, q{ONES};

 private:
  cublasHandle_t blas_ = nullptr;
};

// q = A p by SparseRL.
class Planned {
 public:
  Planned(const sparserl_csr &csr, cudaStream_t stream, const double *p, double *q)
      : stream_(stream), p_(p), q_(q) {
    sparserl_options *options = nullptr;
    sparserl_matrix *matrix = nullptr;
    const std::uint64_t calls = EXPECTED;
    check(sparserl_options_create(&options));
    check(sparserl_options_set(options, SPARSERL_OPTION_EXPECTED_CALLS, &calls, sizeof calls));
    check(sparserl_context_create(nullptr, &context_));
    check(sparserl_matrix_create(context_, &csr, &matrix));
    check(sparserl_plan_create(context_, matrix, options, &plan_));
    check(sparserl_matrix_destroy(matrix));
    check(sparserl_options_destroy(options));
  }
  Planned(const Planned &) = delete;
  Planned &operator=(const Planned &) = delete;
  ~Planned() {
    // What is still searched for is remembered, and disturbs nobody who is timed next.
    sparserl_plan_wait(plan_);
    sparserl_plan_destroy(plan_);
    sparserl_context_destroy(context_);
  }

  void operator()() const {
    const double one = 1, zero = 0;
    check(sparserl_execute(plan_, stream_, &one, p_, &zero, nullptr, q_));
  }

  // By the kernel that it has now.
  std::string name() const {
    char why[512];
    std::size_t length = 0;
    check(sparserl_plan_text(plan_, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, why, sizeof why, &length));
    return std::string("SparseRL, kernel: ") + why;
  }

 private:
  cudaStream_t stream_;
  const double *p_;
  double *q_;
  sparserl_context *context_ = nullptr;
  sparserl_plan *plan_ = nullptr;
};

struct Solution {
  std::vector<double> x;
  int iterations;
  // Seconds: from the matrix in the host's memory until the first iteration could begin, and from
  // there.
  double planning, loop;
  bool is_right;
};

// Solves with the product that `prepare` makes.
template <typename Prepare>
Solution solve(const Poisson &poisson, Cg &cg, const Prepare &prepare, int most, double small) {
  cg.restart();
  const double start = now();
  const auto product = prepare();
  check(cudaStreamSynchronize(cg.stream));
  const double prepared = now();
  const int iterations = cg.iterate(product, most, small);
  const double end = now();
  const std::vector<double> x = cg.x.host(N);
  const double residual = poisson.residual(x), norm = std::sqrt(double(N));
  std::printf("%s\n  %.4f s of planning, %.4f s of %d iterations, residual %.1e of %.1e\n",
              product.name().c_str(), prepared - start, end - prepared, iterations, residual, norm);
  return {x, iterations, prepared - start, end - prepared, residual <= 1e-8 * norm};
}

#ifdef WITH_CUSPARSE
// q = A p by cuSPARSE.
class ByCusparse {
 public:
  ByCusparse(const cusparse::Way &way, const sparserl_csr &csr, const Cg &cg)
      : way_(way), handle_(cg.stream), a_(csr),
        product_(way.prepare(handle_, a_, 1, cg.p.data, cg.q.data)) {}

  void operator()() const { product_->multiply(); }
  std::string name() const { return handle_.name() + ", " + way_.name; }

 private:
  const cusparse::Way &way_;
  cusparse::Handle handle_;
  cusparse::Matrix a_;
  std::unique_ptr<cusparse::Product> product_;
};
#endif

}  // namespace

int main() {
  const Poisson poisson;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    const Planned product(poisson.csr(), nullptr, nullptr, nullptr);
    std::printf("%s\nnothing is solved: there is no GPU\n", product.name().c_str());
    return EXIT_SUCCESS;
  }
  Cg cg;
  const auto plan = [&] { return Planned(poisson.csr(), cg.stream, cg.p.data, cg.q.data); };
  const Solution ours = solve(poisson, cg, plan, MOST, 1e-20 * N);
  bool is_right = ours.is_right;
#ifdef WITH_CUSPARSE
  const auto with_cusparse = [&](const cusparse::Way &way) {
    const auto prepare = [&] { return ByCusparse(way, poisson.csr(), cg); };
    return solve(poisson, cg, prepare, ours.iterations, 0);
  };
  is_right &= cusparse::compare(ours, with_cusparse);
  // Kernels were loaded, and compiled where the cache had none, the first time.
  std::printf("once more:\n");
  is_right &= cusparse::compare(solve(poisson, cg, plan, ours.iterations, 0), with_cusparse);
#endif
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
