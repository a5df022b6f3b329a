// A linear program by PDHG: minimise c'x subject to Ax >= b, l <= x <= u. Each iteration is two
// launches of one plan, whose products with A and with the transpose have epilogues of their own:
// the projections of y and of x. Hundreds of iterations are one CUDA graph. The step sizes tau and
// sigma lie in device memory: whoever adapts them writes others there, and replays the same graph.
//
//   x' = clamp(x - tau (c - A'y), l, u)      the product with the transpose
//   y' = max(y + sigma (b - A (2x' - x)), 0) the product with A
//
//   c++ -std=c++20 pdhg.cpp $(pkg-config --cflags --libs sparserl) -lcudart -o pdhg && ./pdhg
//
// With -DWITH_CUSPARSE the same iterations then run with each of cuSPARSE's products, in graphs of
// as many, and times are compared from the matrix in the host's memory on. Here a projection is a
// kernel of its own behind the product, which takes nvcc: cusparseSpMV() fuses nothing, and the code
// that cusparseSpMVOp() can be given, which has to be compiled for link-time optimisation, is not
// tried:
//
//   nvcc -O2 -std=c++20 -DWITH_CUSPARSE pdhg.cpp pdhg_projection.cu
//       $(pkg-config --cflags --libs sparserl) -lcusparse -o pdhg && ./pdhg
//
// Without a GPU it says which kernels were chosen, and solves nothing.
#include <cuda_runtime_api.h>
#include <sparserl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#ifdef WITH_CUSPARSE
#include "cusparse.hpp"

// pdhg_projection.cu
cudaError_t project_x(cudaStream_t stream, int n, const double *product, const double *step,
                      const double *cost, const double *lower, const double *upper, double *x,
                      double *extrapolated);
cudaError_t project_y(cudaStream_t stream, int n, const double *product, const double *step,
                      const double *need, double *y);
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

// Seconds, by a clock that only goes forward.
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A vector in device memory.
struct Vector {
  double *data = nullptr;
  explicit Vector(int length, double number = 0) : Vector(std::vector<double>(length, number)) {}
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

// The epilogue of A'y: x moves, is projected, and is extrapolated for the other product.
constexpr std::string_view X_STEP = R"(
__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {
  const Scalar moved = old - *user.step * (user.cost[row] - product);
  const Scalar x = min(max(moved, user.lower[row]), user.upper[row]);
  user.extrapolated[row] = 2 * x - old;
  return x;
})";
constexpr std::string_view X_MEMBERS =
    "const Scalar step[1]; const Scalar cost[rows]; const Scalar lower[rows];"
    "const Scalar upper[rows]; Scalar extrapolated[rows];";
struct XUser {
  const double *step, *cost, *lower, *upper;
  double *extrapolated;
};

// The epilogue of A (2x' - x): y moves, and no element gets below 0.
constexpr std::string_view Y_STEP = R"(
__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {
  return max(old + *user.step * (user.need[row] - product), Scalar(0));
})";
constexpr std::string_view Y_MEMBERS = "const Scalar step[1]; const Scalar need[rows];";
struct YUser {
  const double *step, *need;
};

constexpr int ROWS = 20000, COLS = 30000, PER_ROW = 12, ITERATIONS = 10000, IN_GRAPH = 200;

// Covering: each of the rows needs three of its columns' worth.
struct LinearProgram {
  std::vector<std::int32_t> offsets = {0}, columns;
  std::vector<double> values, cost = std::vector<double>(COLS), need = std::vector<double>(ROWS, 3);

  LinearProgram() {
    std::uint32_t state = 1;
    const auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    for (double &c : cost) c = 1 + random() % 1000 / 1000.0;
    for (int row = 0; row < ROWS; ++row) {
      std::vector<std::int32_t> own;
      while (own.size() < PER_ROW) {
        const auto column = static_cast<std::int32_t>(random() % COLS);
        if (std::find(own.begin(), own.end(), column) == own.end()) own.push_back(column);
      }
      std::sort(own.begin(), own.end());
      columns.insert(columns.end(), own.begin(), own.end());
      values.insert(values.end(), own.size(), 1.0);
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }

  sparserl_csr csr() const {
    sparserl_csr csr{};
    csr.rows = ROWS;
    csr.cols = COLS;
    csr.nnz = offsets[ROWS];
    csr.row_offsets = offsets.data();
    csr.column_indices = columns.data();
    csr.values = values.data();
    csr.value_type = SPARSERL_F64;
    return csr;
  }

  // 0.9 / ||A||, of which the square is at most the largest row sum times the largest column sum.
  double step_size() const {
    std::vector<int> counts(COLS);
    for (const std::int32_t column : columns) ++counts[column];
    return 0.9 / std::sqrt(double(PER_ROW) * *std::max_element(counts.begin(), counts.end()));
  }
};

// The iterates, and what the steps are given besides.
struct Pdhg {
  explicit Pdhg(const LinearProgram &program)
      : step_size(1, program.step_size()), cost(program.cost), need(program.need) {
    check(cudaStreamCreate(&stream));
  }
  ~Pdhg() { cudaStreamDestroy(stream); }

  void restart() {
    x.put(std::vector<double>(COLS));
    y.put(std::vector<double>(ROWS));
  }

  cudaStream_t stream = nullptr;
  // The step size is tau and sigma.
  Vector step_size, cost, need;
  Vector x{COLS}, extrapolated{COLS}, lower{COLS}, upper{COLS, 1}, y{ROWS};
  XUser of_x{step_size.data, cost.data, lower.data, upper.data, extrapolated.data};
  YUser of_y{step_size.data, need.data};
};

void set(sparserl_options *options, std::int32_t option, std::string_view text) {
  check(sparserl_options_set(options, option, text.data(), text.size()));
}

template <typename T>
void set_number(sparserl_options *options, std::int32_t option, T number) {
  check(sparserl_options_set(options, option, &number, sizeof number));
}

// Both steps by SparseRL, each a launch.
class Fused {
 public:
  explicit Fused(const sparserl_csr &csr) {
    sparserl_options *options = nullptr;
    sparserl_matrix *matrix = nullptr;
    check(sparserl_options_create(&options));
    set_number<std::uint64_t>(options, SPARSERL_OPTION_EXPECTED_CALLS, 2 * ITERATIONS);
    set_number<std::int32_t>(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
    set(options, SPARSERL_OPTION_EPILOGUE_SOURCE, Y_STEP);
    set(options, SPARSERL_OPTION_EPILOGUE_USER, Y_MEMBERS);
    set(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE, X_STEP);
    set(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER, X_MEMBERS);
    check(sparserl_context_create(nullptr, &context_));
    check(sparserl_matrix_create(context_, &csr, &matrix));
    check(sparserl_plan_create(context_, matrix, options, &plan_));
    check(sparserl_plan_wait(plan_));  // A graph keeps the kernels that it was captured with.
    check(sparserl_matrix_destroy(matrix));
    check(sparserl_options_destroy(options));
  }
  Fused(const Fused &) = delete;
  Fused &operator=(const Fused &) = delete;
  ~Fused() {
    sparserl_plan_destroy(plan_);
    sparserl_context_destroy(context_);
  }

  void iterate(const Pdhg &pdhg) const {
    const double one = 1;
    double *x = pdhg.x.data, *y = pdhg.y.data;
    check(sparserl_execute_op(plan_, SPARSERL_OP_TRANSPOSE, pdhg.stream, &one, y, &one, x, x,
                              &pdhg.of_x));
    check(sparserl_execute_op(plan_, SPARSERL_OP_NONE, pdhg.stream, &one, pdhg.extrapolated.data,
                              &one, y, y, &pdhg.of_y));
  }

  std::string name() const {
    return "SparseRL" + why(SPARSERL_OP_NONE) + why(SPARSERL_OP_TRANSPOSE);
  }

 private:
  std::string why(std::int32_t op) const {
    char why[512];
    std::size_t length = 0;
    check(sparserl_plan_text(plan_, op, SPARSERL_TEXT_WHY, why, sizeof why, &length));
    return std::string("\n  kernel: ") + why;
  }

  sparserl_context *context_ = nullptr;
  sparserl_plan *plan_ = nullptr;
};

struct Solution {
  std::vector<double> x, y;
  // Seconds: from the matrix in the host's memory until the graph could be launched, and from
  // there.
  double planning, loop;
  bool is_right;
};

// Whether the gap between the objective and its bound is small, by the host.
bool is_optimal(const LinearProgram &program, const std::vector<double> &x,
                const std::vector<double> &y) {
  const auto &[offsets, columns, values, cost, need] = program;
  // The dual bound: b'y + sum of min(0, c - A'y), as 0 <= x <= 1.
  double objective = 0, bound = 0, violation = 0;
  std::vector<double> reduced = cost;
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (std::int32_t k = offsets[row]; k < offsets[row + 1]; ++k) {
      sum += values[k] * x[columns[k]];
      reduced[columns[k]] -= values[k] * y[row];
    }
    violation = std::max(violation, need[row] - sum);
    bound += need[row] * y[row];
  }
  for (int i = 0; i < COLS; ++i) {
    objective += cost[i] * x[i];
    bound += std::min(0.0, reduced[i]);
  }
  const double gap = std::abs(objective - bound) / (1 + std::abs(objective));
  std::printf("  objective %.6f, bound %.6f, gap %.1e, violation %.1e\n", objective, bound, gap,
              violation);
  return gap < 1e-3 && violation < 1e-3;
}

// Solves with the steps that `prepare` makes.
template <typename Prepare>
Solution solve(const LinearProgram &program, Pdhg &pdhg, const Prepare &prepare) {
  pdhg.restart();
  const double start = now();
  const auto steps = prepare();
  cudaGraph_t graph;
  cudaGraphExec_t iterations;
  check(cudaStreamBeginCapture(pdhg.stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < IN_GRAPH; ++i) steps.iterate(pdhg);
  check(cudaStreamEndCapture(pdhg.stream, &graph));
  check(cudaGraphInstantiate(&iterations, graph, 0));
  check(cudaStreamSynchronize(pdhg.stream));
  const double prepared = now();
  for (int i = 0; i < ITERATIONS / IN_GRAPH; ++i) check(cudaGraphLaunch(iterations, pdhg.stream));
  check(cudaStreamSynchronize(pdhg.stream));
  const double end = now();
  check(cudaGraphExecDestroy(iterations));
  check(cudaGraphDestroy(graph));
  std::printf("%s\n  %.4f s of planning, %.4f s of %d iterations\n", steps.name().c_str(),
              prepared - start, end - prepared, ITERATIONS);
  const std::vector<double> x = pdhg.x.host(COLS), y = pdhg.y.host(ROWS);
  return {x, y, prepared - start, end - prepared, is_optimal(program, x, y)};
}

#ifdef WITH_CUSPARSE
// Both steps by cuSPARSE, each a product and a projection. The transpose is stored, since a product
// with the transpose of what is stored by rows takes atomics.
class Separate {
 public:
  Separate(const cusparse::Way &way, const sparserl_csr &csr, const Pdhg &pdhg)
      : way_(way), handle_(pdhg.stream), a_(csr), transpose_(a_.transposed(handle_)),
        back_(way.prepare(handle_, transpose_, 1, pdhg.y.data, by_column_.data)),
        forth_(way.prepare(handle_, a_, 1, pdhg.extrapolated.data, by_row_.data)) {}

  void iterate(const Pdhg &pdhg) const {
    const auto &[step, cost, lower, upper, extrapolated] = pdhg.of_x;
    back_->multiply();
    check(project_x(pdhg.stream, COLS, by_column_.data, step, cost, lower, upper, pdhg.x.data,
                    extrapolated));
    forth_->multiply();
    check(project_y(pdhg.stream, ROWS, by_row_.data, step, pdhg.of_y.need, pdhg.y.data));
  }

  std::string name() const { return handle_.name() + ", " + way_.name; }

 private:
  const cusparse::Way &way_;
  cusparse::Handle handle_;
  cusparse::Matrix a_, transpose_;
  Vector by_column_{COLS}, by_row_{ROWS};
  std::unique_ptr<cusparse::Product> back_, forth_;
};
#endif

}  // namespace

int main() {
  const LinearProgram program;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    std::printf("%s\nnothing is solved: there is no GPU\n", Fused(program.csr()).name().c_str());
    return EXIT_SUCCESS;
  }
  Pdhg pdhg(program);
  const auto plan = [&] { return Fused(program.csr()); };
  const Solution ours = solve(program, pdhg, plan);
  bool is_right = ours.is_right;
#ifdef WITH_CUSPARSE
  const auto with_cusparse = [&](const cusparse::Way &way) {
    return solve(program, pdhg, [&] { return Separate(way, program.csr(), pdhg); });
  };
  is_right &= cusparse::compare(ours, with_cusparse);
  // Kernels were loaded, and compiled where the cache had none, the first time.
  std::printf("once more:\n");
  is_right &= cusparse::compare(solve(program, pdhg, plan), with_cusparse);
#endif
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
