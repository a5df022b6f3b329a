// A linear program by PDHG: minimise c'x subject to Ax >= b, 0 <= x <= 1. Each iteration is two
// launches, with the projections fused into the products, and hundreds of them are one CUDA graph.
// The step sizes tau and sigma lie in device memory: whoever adapts them writes others there, and
// replays the same graph.
//
//   x' = clamp(x - tau (c - A'y), 0, 1)      the product with the transpose
//   y' = max(y + sigma (b - A (2x' - x)), 0) the product
//
//   c++ -std=c++20 pdhg.cpp $(pkg-config --cflags --libs sparserl) -lcudart -o pdhg && ./pdhg
//
// Without a GPU it says which kernels were chosen, and solves nothing.
#include <cuda_runtime_api.h>
#include <sparserl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

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

double *on_device(const std::vector<double> &vector) {
  double *copy = nullptr;
  const std::size_t bytes = vector.size() * sizeof(double);
  check(cudaMalloc(reinterpret_cast<void **>(&copy), bytes));
  check(cudaMemcpy(copy, vector.data(), bytes, cudaMemcpyHostToDevice));
  return copy;
}

void set(sparserl_options *options, std::int32_t option, std::string_view text) {
  check(sparserl_options_set(options, option, text.data(), text.size()));
}

template <typename T>
void set_number(sparserl_options *options, std::int32_t option, T number) {
  check(sparserl_options_set(options, option, &number, sizeof number));
}

// One epilogue serves both steps: project, and extrapolate for the other product.
constexpr std::string_view PROJECTION = R"(
__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {
  const Scalar moved = old + *user.step * (product + user.shift[row]);
  const Scalar z = min(max(moved, user.lower[row]), user.upper[row]);
  user.extrapolated[row] = 2 * z - old;
  return z;
})";
constexpr std::string_view MEMBERS =
    "const Scalar step[1]; const Scalar shift[rows]; const Scalar lower[rows];"
    "const Scalar upper[rows]; Scalar extrapolated[rows];";
struct User {
  const double *step, *shift, *lower, *upper;
  double *extrapolated;
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
};

// False if the gap between the objective and its bound is not small in the end.
bool solve(const LinearProgram &program, sparserl_plan *plan) {
  const auto &[offsets, columns, values, cost, need] = program;
  // ||A||^2 is at most the largest row sum times the largest column sum.
  std::vector<int> counts(COLS);
  for (const std::int32_t column : columns) ++counts[column];
  const double norm = std::sqrt(double(PER_ROW) * *std::max_element(counts.begin(), counts.end()));
  const double tau = 0.9 / norm, sigma = 0.9 / norm, one = 1, minus_one = -1;
  std::vector<double> minus_cost(COLS);
  for (int i = 0; i < COLS; ++i) minus_cost[i] = -cost[i];
  constexpr double INFINITE = std::numeric_limits<double>::infinity();
  double *x = on_device(std::vector<double>(COLS)), *y = on_device(std::vector<double>(ROWS));
  double *x_next = on_device(std::vector<double>(COLS));
  const User primal{on_device({tau}), on_device(minus_cost), on_device(std::vector<double>(COLS)),
                    on_device(std::vector<double>(COLS, 1)), x_next};
  const User dual{on_device({sigma}), on_device(need), on_device(std::vector<double>(ROWS)),
                  on_device(std::vector<double>(ROWS, INFINITE)),
                  on_device(std::vector<double>(ROWS))};

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t iterations;
  check(cudaStreamCreate(&stream));
  check(sparserl_plan_wait(plan));  // A graph keeps the kernels that it was captured with.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < IN_GRAPH; ++i) {
    check(sparserl_execute_op(plan, SPARSERL_OP_TRANSPOSE, stream, &one, y, &one, x, x, &primal));
    check(sparserl_execute_op(plan, SPARSERL_OP_NONE, stream, &minus_one, x_next, &one, y, y,
                              &dual));
  }
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&iterations, graph, 0));
  for (int i = 0; i < ITERATIONS / IN_GRAPH; ++i) check(cudaGraphLaunch(iterations, stream));
  check(cudaStreamSynchronize(stream));

  std::vector<double> solution(COLS), prices(ROWS);
  check(cudaMemcpy(solution.data(), x, COLS * sizeof(double), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(prices.data(), y, ROWS * sizeof(double), cudaMemcpyDeviceToHost));
  // The dual bound: b'y + sum of min(0, c - A'y), as 0 <= x <= 1.
  double objective = 0, bound = 0, violation = 0;
  std::vector<double> reduced = cost;
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (std::int32_t k = offsets[row]; k < offsets[row + 1]; ++k) {
      sum += values[k] * solution[columns[k]];
      reduced[columns[k]] -= values[k] * prices[row];
    }
    violation = std::max(violation, need[row] - sum);
    bound += need[row] * prices[row];
  }
  for (int i = 0; i < COLS; ++i) {
    objective += cost[i] * solution[i];
    bound += std::min(0.0, reduced[i]);
  }
  std::printf("objective %.6f, bound %.6f, gap %.1e, violation %.1e\n", objective, bound,
              std::abs(objective - bound) / (1 + std::abs(objective)), violation);
  check(cudaGraphExecDestroy(iterations));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  for (double *vector : {x, y, x_next}) check(cudaFree(vector));
  for (const User &user : {primal, dual})
    for (const double *vector : {user.step, user.shift, user.lower, user.upper})
      check(cudaFree(const_cast<double *>(vector)));
  check(cudaFree(dual.extrapolated));
  return std::abs(objective - bound) < 1e-3 * (1 + std::abs(objective)) && violation < 1e-3;
}

}  // namespace

int main() {
  const LinearProgram program;
  sparserl_csr csr{};
  csr.rows = ROWS;
  csr.cols = COLS;
  csr.nnz = program.offsets[ROWS];
  csr.row_offsets = program.offsets.data();
  csr.column_indices = program.columns.data();
  csr.values = program.values.data();
  csr.value_type = SPARSERL_F64;

  sparserl_context *context = nullptr;
  sparserl_matrix *matrix = nullptr;
  sparserl_options *options = nullptr;
  sparserl_plan *plan = nullptr;
  check(sparserl_context_create(nullptr, &context));
  check(sparserl_matrix_create(context, &csr, &matrix));
  check(sparserl_options_create(&options));
  set_number<std::uint64_t>(options, SPARSERL_OPTION_EXPECTED_CALLS, 2 * ITERATIONS);
  set_number<std::int32_t>(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set(options, SPARSERL_OPTION_EPILOGUE_SOURCE, PROJECTION);
  set(options, SPARSERL_OPTION_EPILOGUE_USER, MEMBERS);
  check(sparserl_plan_create(context, matrix, options, &plan));
  check(sparserl_options_destroy(options));
  char why[512];
  std::size_t length = 0;
  for (const int op : {SPARSERL_OP_NONE, SPARSERL_OP_TRANSPOSE}) {
    check(sparserl_plan_text(plan, op, SPARSERL_TEXT_WHY, why, sizeof why, &length));
    std::printf("kernel: %s\n", why);
  }
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess;
  const bool is_solved = has_gpu && solve(program, plan);
  if (!has_gpu) std::printf("nothing is solved: there is no GPU\n");

  check(sparserl_plan_destroy(plan));
  check(sparserl_matrix_destroy(matrix));
  check(sparserl_context_destroy(context));
  return is_solved || !has_gpu ? EXIT_SUCCESS : EXIT_FAILURE;
}
