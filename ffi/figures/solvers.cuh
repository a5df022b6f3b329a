// Two loops around products, the same for every library but for the product: conjugate gradients, and
// a primal-dual method for linear programs. The vectors' kernels are as plain as they come.
#ifndef FIGURES_SOLVERS_CUH
#define FIGURES_SOLVERS_CUH

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device.hpp"
#include "json.hpp"

constexpr int THREADS = 256, BLOCKS = 264;

// The sum over a block, in each of its threads.
__device__ inline double block_sum(double value) {
  __shared__ double warps[THREADS / 32];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (const double warp : warps) sum += warp;
  return sum;
}

// The sum of what the blocks of the launch before left.
__device__ inline double total(const double *partial) {
  double sum = 0;
  for (int i = int(threadIdx.x); i < BLOCKS; i += THREADS) sum += partial[i];
  return block_sum(sum);
}

__device__ inline double quotient(double a, double b) { return b > 0 ? a / b : 0; }

__global__ void dot(int n, const double *a, const double *b, double *partial) {
  double sum = 0;
  for (int i = int(blockIdx.x) * THREADS + int(threadIdx.x); i < n; i += BLOCKS * THREADS)
    sum += a[i] * b[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void finish(const double *partial, double *sum) {
  const double found = total(partial);
  if (threadIdx.x == 0) *sum = found;
}

// x += step p, r -= step q, and r'r.
__global__ void step(int n, const double *pq, const double *rr, const double *p, const double *q,
                     double *x, double *r, double *partial) {
  const double size = quotient(*rr, total(pq));
  double sum = 0;
  for (int i = int(blockIdx.x) * THREADS + int(threadIdx.x); i < n; i += BLOCKS * THREADS) {
    x[i] += size * p[i];
    const double left = r[i] - size * q[i];
    r[i] = left;
    sum += left * left;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// p = r + share p
__global__ void direction(int n, const double *partial, const double *rr, double *next,
                          const double *r, double *p) {
  const double sum = total(partial), share = quotient(sum, *rr);
  for (int i = int(blockIdx.x) * THREADS + int(threadIdx.x); i < n; i += BLOCKS * THREADS)
    p[i] = r[i] + share * p[i];
  if (blockIdx.x == 0 && threadIdx.x == 0) *next = sum;
}

// z + shift, between bounds.
__global__ void project(int n, const double *shift, const double *lower, const double *upper,
                        double *z) {
  for (int i = int(blockIdx.x) * THREADS + int(threadIdx.x); i < n; i += BLOCKS * THREADS)
    z[i] = fmin(fmax(z[i] + shift[i], lower[i]), upper[i]);
}

// A x = b by conjugate gradients that never ask the device for a number: an iteration is a product
// q = A p and three launches.
class Cg {
 public:
  Cg(cudaStream_t stream, const std::vector<double> &b)
      : x(std::vector<double>(b.size())), r(b), p(b), q(b), stream_(stream), n_(int(b.size())), b_(b),
        pq_(std::vector<double>(BLOCKS)), rr_(std::vector<double>(BLOCKS)),
        squared_(std::vector<double>(2)) {}

  // Back to x = 0.
  void restart() {
    const std::size_t bytes = std::size_t(n_) * sizeof(double);
    check(cudaMemsetAsync(x.get(), 0, bytes, stream_));
    check(cudaMemcpyAsync(r.get(), b_.get(), bytes, cudaMemcpyDeviceToDevice, stream_));
    check(cudaMemcpyAsync(p.get(), b_.get(), bytes, cudaMemcpyDeviceToDevice, stream_));
    dot<<<BLOCKS, THREADS, 0, stream_>>>(n_, b_.get(), b_.get(), rr_.get());
    finish<<<1, THREADS, 0, stream_>>>(rr_.get(), squared_.get());
    check(cudaGetLastError());
  }

  void iterate(int iterations, const std::function<void()> &product) {
    for (int i = 0; i < iterations; ++i) {
      double *now = squared_.get() + i % 2, *next = squared_.get() + (i + 1) % 2;
      product();
      dot<<<BLOCKS, THREADS, 0, stream_>>>(n_, p.get(), q.get(), pq_.get());
      step<<<BLOCKS, THREADS, 0, stream_>>>(n_, pq_.get(), now, p.get(), q.get(), x.get(), r.get(),
                                            rr_.get());
      direction<<<BLOCKS, THREADS, 0, stream_>>>(n_, rr_.get(), now, next, r.get(), p.get());
    }
    check(cudaGetLastError());
  }

  Array<double> x, r, p, q;

 private:
  cudaStream_t stream_;
  int n_;
  Array<double> b_, pq_, rr_, squared_;
};

// The true residuals of solutions of A x = b, by the host.
class Residuals {
 public:
  Residuals(const Matrix &a, const std::vector<double> &b) : a_(a), b_(b) {
    for (const double number : b) norm_ += number * number;
  }

  void add(const std::string &name, const std::vector<double> &x) {
    const Reference<double> product(a_, x);
    double sum = 0;
    for (std::size_t row = 0; row < b_.size(); ++row) {
      const double left = b_[row] - product.sums[row];
      sum += left * left;
    }
    const double residual = norm_ > 0 ? std::sqrt(sum / norm_) : 0;
    all_.put(name, residual);
    by_name_[name] = std::isnan(residual) ? INFINITY : residual;
    least_ = std::min(least_, residual);
  }

  const Json &all() const { return all_; }
  // Whether one is not like the others: where nothing is left to improve they differ by rounding only.
  bool is_apart(const std::string &name) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() && !(found->second <= 1e-10 || found->second <= 10 * least_);
  }

 private:
  const Matrix &a_;
  const std::vector<double> &b_;
  double norm_ = 0, least_ = INFINITY;
  std::map<std::string, double> by_name_;
  Json all_;
};

// The projection as an epilogue, and the values that it takes.
constexpr std::string_view PROJECTION =
    "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {\n"
    "  return min(max(product + old + user.shift[row], user.lower[row]), user.upper[row]);\n"
    "}";
constexpr std::string_view PROJECTION_USER =
    "const Scalar shift[rows]; const Scalar lower[rows]; const Scalar upper[rows];";
struct ProjectionUser {
  const double *shift, *lower, *upper;
};

// What a primal-dual method does over and over:
//   x = clamp(x + tau A'y - tau c), 0, 1)        the product with the transpose
//   y = clamp(y - sigma A x + sigma b, 0, 10)    the product
class Pdhg {
 public:
  explicit Pdhg(const Matrix &a)
      : Pdhg(a, Random(3).vector(std::size_t(a.cols), -1, 1),
             Random(4).vector(std::size_t(a.rows), -1, 1), step_length(a)) {}

  void restart() {
    x.put(std::vector<double>(std::size_t(cols)));
    y.put(std::vector<double>(std::size_t(rows)));
  }

  // An iteration by a plan of A and its transpose, whose epilogue is the projection where it is fused.
  void step(cudaStream_t stream, const Plan<double> &plan, bool is_fused) const {
    plan.multiply(stream, SPARSERL_OP_TRANSPOSE, tau, y.get(), 1, x.get(), is_fused ? &primal : nullptr);
    if (!is_fused) project(stream, cols, primal, x);
    plan.multiply(stream, SPARSERL_OP_NONE, -tau, x.get(), 1, y.get(), is_fused ? &dual : nullptr);
    if (!is_fused) project(stream, rows, dual, y);
  }
  // An iteration by x + tau A'y and y - tau A x, which were prepared.
  template <typename Product>
  void step(cudaStream_t stream, const Product &back, const Product &forth) const {
    back.multiply();
    project(stream, cols, primal, x);
    forth.multiply();
    project(stream, rows, dual, y);
  }

  // x and y one after the other, by this program itself.
  std::vector<double> on_host(const Matrix &a, int iterations) const {
    const std::vector<double> c = x_shift_.host(), b = y_shift_.host();
    std::vector<double> both(std::size_t(cols) + std::size_t(rows));
    double *found_x = both.data(), *found_y = both.data() + cols;
    for (int i = 0; i < iterations; ++i) {
      for (std::int32_t column = 0; column < cols; ++column) found_x[column] += c[column];
      for (std::int32_t row = 0; row < rows; ++row)
        for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k)
          found_x[a.columns[k]] += tau * a.values[k] * found_y[row];
      for (std::int32_t column = 0; column < cols; ++column)
        found_x[column] = std::min(std::max(found_x[column], 0.0), 1.0);
      for (std::int32_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k)
          sum += a.values[k] * found_x[a.columns[k]];
        found_y[row] = std::min(std::max(found_y[row] - tau * sum + b[row], 0.0), 10.0);
      }
    }
    return both;
  }
  std::vector<double> found() const {
    std::vector<double> both = x.host();
    const std::vector<double> second = y.host();
    both.insert(both.end(), second.begin(), second.end());
    return both;
  }

  // Fails where numbers are apart.
  static void compare(const std::vector<double> &found, const std::vector<double> &right,
                      double tolerance, const std::string &name) {
    for (std::size_t i = 0; i < right.size(); ++i)
      if (!(std::abs(found[i] - right[i]) <= tolerance * (1 + std::abs(right[i]))))
        fail("primal-dual method by " + name + ": number " + std::to_string(i) + " is " +
             std::to_string(found[i]) + ", not " + std::to_string(right[i]));
  }

  std::int32_t rows, cols;
  // tau and sigma.
  double tau;
  Array<double> x, y;

 private:
  // 0.9 / ||A||, of which the square is at most the largest row sum times the largest column sum.
  static double step_length(const Matrix &a) {
    std::vector<double> by_column(std::size_t(a.cols));
    double row_sum = 0, column_sum = 0;
    for (std::int32_t row = 0; row < a.rows; ++row) {
      double sum = 0;
      for (std::int32_t k = a.offsets[row]; k < a.offsets[row + 1]; ++k) {
        sum += std::abs(a.values[k]);
        by_column[a.columns[k]] += std::abs(a.values[k]);
      }
      row_sum = std::max(row_sum, sum);
    }
    for (const double sum : by_column) column_sum = std::max(column_sum, sum);
    return row_sum > 0 ? 0.9 / std::sqrt(row_sum * column_sum) : 1;
  }
  static std::vector<double> scaled(std::vector<double> numbers, double factor) {
    for (double &number : numbers) number *= factor;
    return numbers;
  }

  Pdhg(const Matrix &a, const std::vector<double> &c, const std::vector<double> &b, double length)
      : rows(a.rows), cols(a.cols), tau(length), x(std::vector<double>(c.size())),
        y(std::vector<double>(b.size())), x_shift_(scaled(c, -length)), y_shift_(scaled(b, length)),
        zeros_(std::vector<double>(std::max(c.size(), b.size()))),
        ones_(std::vector<double>(c.size(), 1)), tens_(std::vector<double>(b.size(), 10)),
        primal{x_shift_.get(), zeros_.get(), ones_.get()},
        dual{y_shift_.get(), zeros_.get(), tens_.get()} {}

  static void project(cudaStream_t stream, int n, const ProjectionUser &user, const Array<double> &z) {
    ::project<<<BLOCKS, THREADS, 0, stream>>>(n, user.shift, user.lower, user.upper, z.get());
    check(cudaGetLastError());
  }

  Array<double> x_shift_, y_shift_, zeros_, ones_, tens_;

 public:
  // The user blocks of the fused steps.
  ProjectionUser primal, dual;
};

#endif
