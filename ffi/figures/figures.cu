// Figures of the C API on a GPU, beside those of cuSPARSE in the same run: what a call costs the
// host, what products take, new values, the transpose, two solvers, and when planning has paid.
//
//   nvcc -O2 -std=c++17 -arch=native -I.. figures.cu -L../../target/release -lsparserl -lcusparse -o figures
//   LD_LIBRARY_PATH=../../target/release ./figures [--calls N] [--rounds N] [--thorough]
//       [--only-products] [--only-solvers] matrix.mtx... > figures.jsonl
//
// Each matrix, a Matrix Market file or one of generate.hpp's, gives a line of JSON, with the samples
// that medians are of. Symmetric matrices are expanded, and patterns get random values. Times are in
// microseconds, those of calls on the host in nanoseconds, unless their names say otherwise; what is
// not known is null. All contenders are called in turn. Every result is compared with a product on
// the host, or all solutions with each other: a wrong one ends the program with status 1.
//
// --calls is what plans are told to expect, for which they then measure on the GPU (at least 3 s a
// plan); --thorough also measures for the plans for A and A', which takes some 15 s longer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cusparse.hpp"
#include "device.hpp"
#include "end_to_end.cuh"
#include "generate.hpp"
#include "json.hpp"
#include "matrix.hpp"
#include "race.hpp"
#include "solvers.cuh"

namespace {

struct Settings {
  std::uint64_t calls = 200000;
  int rounds = 9;
  bool thorough = false, products = true, solvers = true;
};

// Where everything runs.
struct Machine {
  sparserl_context *context = nullptr;
  cusparseHandle_t cusparse = nullptr;
  cudaStream_t stream = nullptr;
};

constexpr int PRODUCTS = 1000, ITERATIONS = 1000;
constexpr double ONE = 1, ZERO = 0;

__global__ void nothing() {}

double median_of(const std::vector<Contender> &contenders, const std::string &name) {
  for (const Contender &contender : contenders)
    if (contender.name == name) return median(contender.samples);
  return -1;
}

double fastest_cusparse(const std::vector<Contender> &contenders) {
  double best = -1;
  for (const Contender &contender : contenders) {
    if (contender.name.rfind("cusparse", 0) != 0) continue;
    const double time = median(contender.samples);
    if (best < 0 || time < best) best = time;
  }
  return best;
}

template <typename T>
Json plan_of(const Plan<T> &plan, std::int32_t op = SPARSERL_OP_NONE) {
  Json made;
  made.put("why", plan.text(op, SPARSERL_TEXT_WHY));
  made.put("program", plan.text(op, SPARSERL_TEXT_PROGRAM));
  made.put("packed_bytes", plan.number(op, SPARSERL_NUMBER_PACKED_BYTES));
  made.put("matrix_s", plan.matrix_seconds);
  made.put("create_s", plan.create_seconds);
  made.put("ready_s", plan.ready_seconds);
  made.put_known("planning_s", plan.number(op, SPARSERL_NUMBER_PLANNING_SECONDS));
  made.put_known("predicted_us", plan.number(op, SPARSERL_NUMBER_PREDICTED_SECONDS), 1e6);
  made.put_known("measured_us", plan.number(op, SPARSERL_NUMBER_MEASURED_SECONDS), 1e6);
  made.put_known("csr_us", plan.number(op, SPARSERL_NUMBER_CSR_SECONDS), 1e6);
  made.put_known("cusparse_us", plan.number(op, SPARSERL_NUMBER_CUSPARSE_SECONDS), 1e6);
  made.put_known("calls_to_pay", plan.number(op, SPARSERL_NUMBER_CALLS_TO_PAY));
  return made;
}

// Calls after which planning has paid by these times, and what the plan itself says.
template <typename T>
Json break_even(const Plan<T> &plan, const std::vector<Contender> &raced, const std::string &name) {
  const double own = median_of(raced, name), csr = median_of(raced, "sparserl_csr");
  const auto calls = [&](double other) {
    return other > own ? std::ceil(1e6 * plan.ready_seconds / (other - own)) : -1;
  };
  Json made;
  made.put("planning_s", plan.ready_seconds);
  made.put("saved_over_csr_us", csr - own);
  made.put("saved_over_cusparse_us", fastest_cusparse(raced) - own);
  made.put_known("calls_over_csr", calls(csr));
  made.put_known("calls_over_cusparse", calls(fastest_cusparse(raced)));
  made.put_known("calls_to_pay_by_api", plan.number(0, SPARSERL_NUMBER_CALLS_TO_PAY));
  return made;
}

// Has each contender compute its z, and compares it.
template <typename T>
void verify(const std::vector<Contender> &contenders, const Array<T> &z, const Reference<T> &right,
            const std::string &what) {
  for (const Contender &contender : contenders) {
    // No zeros, which a kernel that does nothing would get away with.
    if (!right.sums.empty())
      check(cudaMemset(z.get(), 0x40, right.sums.size() * sizeof(T)));
    check(cudaDeviceSynchronize());
    contender.call();
    right.check(z.host(), what + " by " + contender.name);
  }
}

// cuSPARSE's ways to z = alpha A x + beta z, and what their preparation took.
template <typename T>
struct Ways {
  std::vector<Contender> contenders;
  Json preprocess_seconds;

  Ways(const Machine &machine, const Operands<T> &operands, const std::string &suffix = "") {
    for (const Way<T> &way : ways<T>(machine.cusparse)) {
      const auto product = way.prepare(operands);
      preprocess_seconds.put(way.name, product->preprocess_seconds);
      contenders.push_back({way.name + suffix, [product] { product->multiply(); }});
    }
  }
};

void append(std::vector<Contender> &to, const std::vector<Contender> &from) {
  to.insert(to.end(), from.begin(), from.end());
}

// 1. What 10,000 calls cost the host, in nanoseconds: each is timed, and each batch of them.
Json overhead(const Machine &machine, const Matrix &a) {
  constexpr int BATCHES = 40, BATCH = 250;
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const Array<double> x(x_host), z(std::vector<double>(std::size_t(a.rows)));
  const Plan<double> checked(machine.context, a, {});
  Wishes wishes;
  wishes.check_pointers = 0;
  const Plan<double> unchecked(machine.context, a, wishes);
  const Csr<double> csr(a);
  cudaStream_t stream = machine.stream;
  std::vector<Contender> contenders{
      {"sparserl", [&] { checked.multiply(stream, 0, ONE, x.get(), ZERO, z.get()); }},
      {"sparserl_unchecked", [&] { unchecked.multiply(stream, 0, ONE, x.get(), ZERO, z.get()); }},
  };
  append(contenders, Ways<double>(machine, {csr, false, ONE, x.get(), ZERO, z.get()}).contenders);
  verify(contenders, z, Reference<double>(a, x_host), "z = A x");
  contenders.push_back({"empty_kernel", [&] { nothing<<<1, 32, 0, stream>>>(); }});
  std::vector<Contender> batches;
  for (Contender &contender : contenders) {
    batches.push_back({contender.name, contender.call});
    for (int i = 0; i < BATCH; ++i) contender.call();
  }
  in_turn(batches, BATCHES, [&](Contender &batch) {
    check(cudaStreamSynchronize(stream));
    Contender &calls = contenders[std::size_t(&batch - batches.data())];
    const double start = now();
    double before = start;
    for (int i = 0; i < BATCH; ++i) {
      batch.call();
      const double after = now();
      calls.samples.push_back(1e9 * (after - before));
      before = after;
    }
    batch.samples.push_back(1e9 * (before - start) / BATCH);
  });
  check(cudaStreamSynchronize(stream));
  Json made;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::vector<double> &calls = contenders[i].samples;
    const double middle = median(calls);
    std::sort(calls.begin(), calls.end());
    made.put(contenders[i].name, Json()
                                     .put("median_ns", middle)
                                     .put("p99_ns", calls[calls.size() * 99 / 100])
                                     .put("batch_means_ns", batches[i].samples));
  }
  return made;
}

// 2. and 7. Products, and when planning has paid.
template <typename T>
Json products(const Machine &machine, const Settings &settings, const Matrix &a) {
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const Array<T> x(x_host), z(std::vector<T>(std::size_t(a.rows)));
  const Wishes measured{settings.calls, 1};
  const Plan<T> plan(machine.context, a, measured);
  const Plan<T> chosen(machine.context, a, {1000000, 0});
  const Plan<T> plain(machine.context, a, {});
  const Csr<T> csr(a);
  const Ways<T> cusparse(machine, {csr, false, T(1), x.get(), T(0), z.get()});
  const auto multiply = [&](const Plan<T> &own) {
    return [&] { own.multiply(machine.stream, 0, T(1), x.get(), T(0), z.get()); };
  };
  std::vector<Contender> raced{
      {"sparserl", multiply(plan)},
      {"sparserl_chosen", multiply(chosen)},
      {"sparserl_csr", multiply(plain)},
  };
  append(raced, cusparse.contenders);
  verify(raced, z, Reference<T>(a, x_host), "z = A x");
  std::vector<Contender> in_graphs;
  race_in_graphs(machine.stream, raced, settings.rounds, 100, PRODUCTS / 100, in_graphs);
  race(machine.stream, raced, settings.rounds, PRODUCTS);
  Json made;
  made.put("plan", plan_of(plan)).put("chosen", plan_of(chosen)).put("csr", plan_of(plain));
  made.put("cusparse_preprocess_s", cusparse.preprocess_seconds);
  made.put("in_stream_us", results_of(raced)).put("in_graphs_us", results_of(in_graphs));
  made.put("break_even", Json()
                             .put("measured", break_even(plan, in_graphs, "sparserl"))
                             .put("chosen", break_even(chosen, in_graphs, "sparserl_chosen")));
  return made;
}

// 3. New values, beside a product with them.
Json updates(const Machine &machine, const Settings &settings, const Matrix &a) {
  Wishes wishes{1000000, 0};
  wishes.values_variable = 1;
  const Plan<double> plan(machine.context, a, wishes);
  Matrix other = a;
  other.values = Random(5).vector(a.values.size(), 0.5, 1.5);
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const Array<double> x(x_host), z(std::vector<double>(std::size_t(a.rows)));
  const Array<double> first(a.values), second(other.values);
  const std::vector<Contender> product{
      {"product", [&] { plan.multiply(machine.stream, 0, ONE, x.get(), ZERO, z.get()); }}};
  verify(product, z, Reference<double>(a, x_host), "the product with the first values");
  plan.update(machine.stream, second.get(), SPARSERL_DEVICE);
  verify(product, z, Reference<double>(other, x_host), "the product after an update on the device");
  plan.update(machine.stream, a.values.data(), SPARSERL_HOST);
  verify(product, z, Reference<double>(a, x_host), "the product after an update from the host");
  std::vector<Contender> raced = product;
  raced.push_back({"update_on_device",
                   [&] { plan.update(machine.stream, first.get(), SPARSERL_DEVICE); }});
  race(machine.stream, raced, settings.rounds, 100);
  // That from the host waits for the stream, so its time is the host's.
  std::vector<double> from_host;
  for (int round = 0; round < settings.rounds; ++round) {
    check(cudaStreamSynchronize(machine.stream));
    const double start = now();
    for (int i = 0; i < 10; ++i) plan.update(machine.stream, a.values.data(), SPARSERL_HOST);
    from_host.push_back(1e6 * (now() - start) / 10);
  }
  raced.push_back({"update_from_host", nullptr, from_host});
  return Json().put("plan", plan_of(plan)).put("us", results_of(raced));
}

// 4. A and its transpose by one plan.
Json both(const Machine &machine, const Settings &settings, const Matrix &a, const Matrix &transposed,
          const Plan<double> &plan) {
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const std::vector<double> y_host = Random(6).vector(std::size_t(a.rows), -1, 1);
  const Array<double> x(x_host), y(y_host);
  const Array<double> ax(std::vector<double>(std::size_t(a.rows)));
  const Array<double> aty(std::vector<double>(std::size_t(a.cols)));
  const Csr<double> csr(a), stored(transposed);
  const SpMV<double> op(machine.cusparse, {csr, true, ONE, y.get(), ZERO, aty.get()},
                        CUSPARSE_SPMV_ALG_DEFAULT);
  std::vector<Contender> forward{
      {"sparserl", [&] { plan.multiply(machine.stream, 0, ONE, x.get(), ZERO, ax.get()); }},
  };
  append(forward, Ways<double>(machine, {csr, false, ONE, x.get(), ZERO, ax.get()}).contenders);
  std::vector<Contender> backward{
      {"sparserl", [&] { plan.multiply(machine.stream, 1, ONE, y.get(), ZERO, aty.get()); }},
      {"cusparse_transpose_op", [&] { op.multiply(); }},
  };
  append(backward,
         Ways<double>(machine, {stored, false, ONE, y.get(), ZERO, aty.get()}, "_stored").contenders);
  verify(forward, ax, Reference<double>(a, x_host), "z = A x");
  verify(backward, aty, Reference<double>(transposed, y_host), "z = A' y");
  std::vector<Contender> forward_graphs, backward_graphs;
  race_in_graphs(machine.stream, forward, settings.rounds, 100, PRODUCTS / 100, forward_graphs);
  race_in_graphs(machine.stream, backward, settings.rounds, 100, PRODUCTS / 100, backward_graphs);
  return Json()
      .put("plan", plan_of(plan))
      .put("plan_of_transpose", plan_of(plan, SPARSERL_OP_TRANSPOSE))
      .put("a_in_graphs_us", results_of(forward_graphs))
      .put("transpose_in_graphs_us", results_of(backward_graphs));
}

// 5. Conjugate gradients.
Json gradients(const Machine &machine, const Settings &settings, const Matrix &given,
               const Matrix &transposed) {
  const bool is_given = is_dominant(given, transposed);
  const Matrix a = is_given ? given : positive_definite(given);
  const std::vector<double> b = Random(7).vector(std::size_t(a.rows), -1, 1);
  const Plan<double> plan(machine.context, a, {settings.calls, 1});
  Cg cg(machine.stream, b);
  const Csr<double> csr(a);
  const auto own = [&] { plan.multiply(machine.stream, 0, ONE, cg.p.get(), ZERO, cg.q.get()); };
  std::vector<Contender> loops{
      {"sparserl", [&] { cg.iterate(ITERATIONS, own); }},
      {"no_product", [&] { cg.iterate(ITERATIONS, [] {}); }},
  };
  const Ways<double> cusparse(machine, {csr, false, ONE, cg.p.get(), ZERO, cg.q.get()});
  for (const Contender &product : cusparse.contenders)
    loops.push_back({product.name, [&] { cg.iterate(ITERATIONS, product.call); }});
  race_loops(loops, settings.rounds, [&] { cg.restart(); });
  Json made;
  made.put("rows", a.rows).put("nnz", double(a.nnz())).put("as_given", is_given);
  made.put("plan", plan_of(plan)).put("loop_s", results_of(loops));
  Residuals residuals(a, b);
  for (const Contender &loop : loops) {
    if (loop.name == "no_product") continue;
    cg.restart();
    loop.call();
    residuals.add(loop.name, cg.x.host());
  }
  return made.put("residuals", residuals.checked());
}

// 6. A primal-dual method, with its projections fused into the products or after them.
Json primal_dual(const Machine &machine, const Settings &settings, const Matrix &a,
                 const Matrix &transposed, const Plan<double> &plan) {
  Wishes wishes{1000000, settings.thorough ? 1 : 0};
  wishes.transpose_too = 1;
  wishes.epilogue = PROJECTION;
  wishes.user = PROJECTION_USER;
  const Plan<double> fused(machine.context, a, wishes);
  Pdhg loop(a);
  const Csr<double> csr(a), stored(transposed);
  double *x = loop.x.get(), *y = loop.y.get();
  const double tau = loop.tau;
  cudaStream_t stream = machine.stream;
  std::vector<Contender> steps{
      {"sparserl_fused", [&] { loop.step(stream, fused, true); }},
      {"sparserl_separate", [&] { loop.step(stream, plan, false); }},
  };
  for (const Way<double> &way : ways<double>(machine.cusparse)) {
    const auto back = way.prepare({stored, false, tau, y, ONE, x});
    const auto forth = way.prepare({csr, false, -tau, x, ONE, y});
    steps.push_back({way.name, [&loop, stream, back, forth] { loop.step(stream, *back, *forth); }});
  }
  constexpr int FEW = 10;
  const std::vector<double> right = loop.on_host(a, FEW);
  std::vector<Contender> loops;
  std::vector<double> after_all;
  for (const Contender &step : steps) {
    loop.restart();
    for (int i = 0; i < FEW; ++i) step.call();
    loop.compare(loop.found(), right, 1e-10, step.name);
    for (int i = FEW; i < ITERATIONS; ++i) step.call();
    const std::vector<double> found = loop.found();
    if (after_all.empty()) after_all = found;
    loop.compare(found, after_all, 1e-6, step.name);
    loops.push_back({step.name, [&step] {
                       for (int i = 0; i < ITERATIONS; ++i) step.call();
                     }});
  }
  race_loops(loops, settings.rounds, [&] { loop.restart(); });
  std::vector<Contender> in_graphs;
  race_in_graphs(stream, steps, settings.rounds, 100, ITERATIONS / 100, in_graphs);
  return Json()
      .put("fused", plan_of(fused))
      .put("fused_transpose", plan_of(fused, SPARSERL_OP_TRANSPOSE))
      .put("separate", plan_of(plan))
      .put("separate_transpose", plan_of(plan, SPARSERL_OP_TRANSPOSE))
      .put("loop_s", results_of(loops))
      .put("iteration_in_graphs_us", results_of(in_graphs));
}

Json figures(const Machine &machine, const Settings &settings, const std::string &name) {
  const std::optional<Matrix> generated = generate(name);
  const Matrix a = generated ? *generated : read_market(name), transposed = a.transposed();
  Json made;
  made.put("matrix", name.substr(name.find_last_of('/') + 1));
  made.put("rows", a.rows).put("cols", a.cols).put("nnz", double(a.nnz()));
  if (settings.products) {
    made.put("overhead_tiny", overhead(machine, stencil5(32)));
    made.put("overhead", overhead(machine, a));
    made.put("f64", products<double>(machine, settings, a));
    made.put("f32", products<float>(machine, settings, a));
    made.put("updates", updates(machine, settings, a));
    Wishes wishes{1000000, settings.thorough ? 1 : 0};
    wishes.transpose_too = 1;
    const Plan<double> plan(machine.context, a, wishes);
    made.put("both", both(machine, settings, a, transposed, plan));
    if (a.rows == a.cols) made.put("cg", gradients(machine, settings, a, transposed));
    made.put("pdhg", primal_dual(machine, settings, a, transposed, plan));
  }
  if (settings.solvers) {
    const EndToEnd solvers(machine.cusparse, machine.stream, settings.rounds);
    Json whole;
    if (a.rows == a.cols) {
      const bool is_given = is_dominant(a, transposed);
      whole.put("cg", solvers.gradients(is_given ? a : positive_definite(a)));
    }
    made.put("end_to_end", whole.put("pdhg", solvers.primal_dual(a)));
  }
  return made;
}

Json machine_of() {
  int device = 0, driver = 0, runtime = 0, cusparse = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  check(cudaDriverGetVersion(&driver));
  check(cudaRuntimeGetVersion(&runtime));
  cusparseHandle_t handle = nullptr;
  check(cusparseCreate(&handle));
  check(cusparseGetVersion(handle, &cusparse));
  check(cusparseDestroy(handle));
  return Json()
      .put("gpu", properties.name)
      .put("cuda_driver", driver)
      .put("cuda_runtime", runtime)
      .put("cusparse", cusparse)
      .put("sparserl", sparserl_version());
}

}  // namespace

int main(int count, char **arguments) {
  Settings settings;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto number = [&](long long most) {
      char *end = nullptr;
      const long long value = i + 1 < count ? std::strtoll(arguments[i + 1], &end, 10) : 0;
      if (i + 1 >= count || *end || value < 1 || value > most)
        fail(argument + ": expected a number from 1 to " + std::to_string(most));
      ++i;
      return value;
    };
    if (argument == "--calls") settings.calls = std::uint64_t(number(1000000000000));
    else if (argument == "--rounds") settings.rounds = int(number(1000));
    else if (argument == "--thorough") settings.thorough = true;
    else if (argument == "--only-products") settings.solvers = false;
    else if (argument == "--only-solvers") settings.products = false;
    else if (argument.rfind("--", 0) == 0)
      fail(argument + ": expected --calls, --rounds, --thorough, --only-products or --only-solvers");
    else paths.push_back(argument);
  }
  if (paths.empty()) fail("expected matrices: Matrix Market files, or " + std::string(GENERATED));
  Machine machine;
  const Json about = machine_of();
  const double start = now();
  check(sparserl_context_create(nullptr, &machine.context));
  const double context_seconds = now() - start;
  check(cusparseCreate(&machine.cusparse));
  check(cudaStreamCreate(&machine.stream));
  check(cusparseSetStream(machine.cusparse, machine.stream));
  for (const std::string &path : paths) {
    const double begin = now();
    Json made = figures(machine, settings, path);
    made.put("machine", about).put("context_s", context_seconds).put("took_s", now() - begin);
    std::printf("%s\n", made.line().c_str());
    std::fflush(stdout);
  }
  check(cudaStreamDestroy(machine.stream));
  check(cusparseDestroy(machine.cusparse));
  check(sparserl_context_destroy(machine.context));
  return EXIT_SUCCESS;
}
