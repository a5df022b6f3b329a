// Conjugate gradients for a Poisson problem, with SparseRL's product and cuBLAS for the rest.
//
//   c++ -std=c++20 cg.cpp $(pkg-config --cflags --libs sparserl) -lcublas -lcudart -o cg && ./cg
//
// Without a GPU it says which kernel was chosen, and solves nothing.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <sparserl.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLAS: %s\n", cublasGetStatusString(status));
  std::exit(EXIT_FAILURE);
}

// A vector in device memory.
struct Vector {
  double *data = nullptr;
  explicit Vector(const std::vector<double> &from) {
    const std::size_t bytes = from.size() * sizeof(double);
    check(cudaMalloc(reinterpret_cast<void **>(&data), bytes));
    check(cudaMemcpy(data, from.data(), bytes, cudaMemcpyHostToDevice));
  }
  Vector(const Vector &) = delete;
  Vector &operator=(const Vector &) = delete;
  ~Vector() { cudaFree(data); }
};

// The five-point Laplacian on a square.
constexpr int SIDE = 400, N = SIDE * SIDE, MOST = 2000;

// A x = 1 from x = 0 on; false if the residual is not small in the end.
bool solve(sparserl_plan *plan) {
  cudaStream_t stream;
  cublasHandle_t blas;
  check(cudaStreamCreate(&stream));
  check(cublasCreate(&blas));
  check(cublasSetStream(blas, stream));
  const std::vector<double> b(N, 1);
  const double one = 1, zero = 0, minus = -1;
  double squared_norm = 0;
  int iteration = 0;
  {
    Vector x(std::vector<double>(N, 0)), r(b), p(b), q(b);
    check(cublasDdot(blas, N, r.data, 1, r.data, 1, &squared_norm));
    const double squared_target = 1e-20 * squared_norm;
    for (; iteration < MOST && squared_norm > squared_target; ++iteration) {
      check(sparserl_execute(plan, stream, &one, p.data, &zero, nullptr, q.data));
      double curvature = 0;
      check(cublasDdot(blas, N, p.data, 1, q.data, 1, &curvature));
      const double step = squared_norm / curvature, back = -step;
      check(cublasDaxpy(blas, N, &step, p.data, 1, x.data, 1));
      check(cublasDaxpy(blas, N, &back, q.data, 1, r.data, 1));
      double next = 0;
      check(cublasDdot(blas, N, r.data, 1, r.data, 1, &next));
      const double share = next / squared_norm;
      check(cublasDscal(blas, N, &share, p.data, 1));
      check(cublasDaxpy(blas, N, &one, r.data, 1, p.data, 1));
      squared_norm = next;
    }
    // The true residual, by the same product: b - A x.
    Vector rhs(b);
    check(sparserl_execute(plan, stream, &minus, x.data, &one, rhs.data, q.data));
    check(cublasDdot(blas, N, q.data, 1, q.data, 1, &squared_norm));
  }
  check(cublasDestroy(blas));
  check(cudaStreamDestroy(stream));
  std::printf("%d iterations, residual %.1e of %.1e\n", iteration, std::sqrt(squared_norm),
              std::sqrt(double(N)));
  return squared_norm <= 1e-16 * N;
}

}  // namespace

int main() {
  std::vector<std::int32_t> offsets{0}, columns;
  std::vector<double> values;
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
  sparserl_csr csr{};
  csr.rows = csr.cols = N;
  csr.nnz = offsets[N];
  csr.row_offsets = offsets.data();
  csr.column_indices = columns.data();
  csr.values = values.data();
  csr.value_type = SPARSERL_F64;

  sparserl_context *context = nullptr;
  sparserl_matrix *matrix = nullptr;
  sparserl_plan *plan = nullptr;
  check(sparserl_context_create(nullptr, &context));
  check(sparserl_matrix_create(context, &csr, &matrix));
  check(sparserl_plan_create(context, matrix, nullptr, &plan));
  char why[512];
  std::size_t length = 0;
  check(sparserl_plan_text(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, why, sizeof why, &length));
  std::printf("kernel: %s\n", why);
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess;
  const bool is_solved = has_gpu && solve(plan);
  if (!has_gpu) std::printf("nothing is solved: there is no GPU\n");

  check(sparserl_plan_destroy(plan));
  check(sparserl_matrix_destroy(matrix));
  check(sparserl_context_destroy(context));
  return is_solved || !has_gpu ? EXIT_SUCCESS : EXIT_FAILURE;
}
