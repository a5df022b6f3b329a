// Solvers from a matrix in the host's memory until their last iteration: planning, copying and
// preparing included. Each runs in a stream, and as replays of a CUDA graph.
#ifndef FIGURES_END_TO_END_CUH
#define FIGURES_END_TO_END_CUH

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contenders.hpp"
#include "graph.hpp"
#include "solver_races.hpp"
#include "solvers.cuh"

// The name of a solver in a graph is that of the one in the stream with this behind it.
constexpr const char *IN_GRAPH = "_in_graph";

class EndToEnd {
 public:
  // After each number of iterations `save` is given all there is.
  using Save = std::function<void(const Json &)>;

  // No race begins that would not end by `deadline`, as far as can be told before.
  EndToEnd(const Machine &machine, const Rounds &rounds, double deadline)
      : cusparse_(machine.cusparse), stream_(machine.stream), races_(rounds, deadline) {}

  bool is_right() const { return races_.is_right(); }

  // Conjugate gradients: one product an iteration.
  Json gradients(const Matrix &a, const Save &save) {
    const std::vector<double> b = Random(7).vector(std::size_t(a.rows), -1, 1);
    Cg cg(stream_, b);
    const double *p = cg.p.get();
    double *q = cg.q.get();
    const auto restart = [&] { cg.restart(); };
    std::vector<Solver> solvers;
    add(solvers, "sparserl", [&](const Run &run) {
      const Plan<double> plan(run.context, a, wishes(run), Search::InBackground);
      const auto product = [&] { plan.multiply(stream_, SPARSERL_OP_NONE, 1, p, 0, q); };
      return ended(run, restart, [&](int count) { cg.iterate(count, product); }, &plan);
    });
    for (const Way<double> &way : ways<double>(cusparse_))
      add(solvers, way.name, [&, way](const Run &run) {
        const Csr<double> csr(a);
        const auto prepared = way.prepare({csr, false, 1, p, 0, q});
        const auto product = [&] { prepared->multiply(); };
        return ended(run, restart, [&](int count) { cg.iterate(count, product); });
      });
    const auto judge = [&](const std::vector<std::vector<double>> &found) {
      Residuals residuals(a, b);
      std::vector<std::string> wrong(found.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        if (!found[i].empty()) residuals.add(solvers[i].name, found[i]);
      for (std::size_t i = 0; i < found.size(); ++i)
        if (residuals.is_apart(solvers[i].name))
          wrong[i] = "residuals do not agree: " + residuals.all().line();
      return wrong;
    };
    return races_.run(solvers, {restart, [&] { return cg.x.host(); }, judge, save});
  }

  // A primal-dual method: a product with A and one with its transpose an iteration.
  Json primal_dual(const Matrix &a, const Save &save) {
    Pdhg loop(a);
    double *x = loop.x.get(), *y = loop.y.get();
    const double tau = loop.tau;
    const auto restart = [&] { loop.restart(); };
    std::vector<Solver> solvers;
    for (const bool is_fused : {true, false})
      add(solvers, is_fused ? "sparserl_fused" : "sparserl_separate", [&, is_fused](const Run &run) {
        Wishes wished = wishes(run);
        wished.transpose_too = 1;
        if (is_fused) {
          wished.epilogue = PROJECTION;
          wished.user = PROJECTION_USER;
        }
        const Plan<double> plan(run.context, a, wished, Search::InBackground);
        const auto iterate = [&](int count) {
          for (int i = 0; i < count; ++i) loop.step(stream_, plan, is_fused);
        };
        return ended(run, restart, iterate, &plan);
      });
    const auto by_products = [&](const Run &run, const Product<double> &back,
                                 const Product<double> &forth) {
      const auto iterate = [&](int count) {
        for (int i = 0; i < count; ++i) loop.step(stream_, back, forth);
      };
      return ended(run, restart, iterate);
    };
    for (const Way<double> &way : ways<double>(cusparse_))
      add(solvers, way.name, [&, way](const Run &run) {
        const Csr<double> csr(a);
        const auto stored = csr.transposed(cusparse_);
        const auto back = way.prepare({*stored, false, tau, y, 1, x});
        const auto forth = way.prepare({csr, false, -tau, x, 1, y});
        return by_products(run, *back, *forth);
      });
    add(solvers, "cusparse_transpose_op", [&](const Run &run) {
      const Csr<double> csr(a);
      const SpMV<double> back(cusparse_, {csr, true, tau, y, 1, x}, CUSPARSE_SPMV_ALG_DEFAULT);
      const SpMV<double> forth(cusparse_, {csr, false, -tau, x, 1, y}, CUSPARSE_SPMV_ALG_DEFAULT);
      return by_products(run, back, forth);
    });
    const auto judge = [&](const std::vector<std::vector<double>> &found) {
      std::vector<std::string> wrong(found.size());
      const std::vector<double> *first = nullptr;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i].empty()) continue;
        if (!first) first = &found[i];
        try {
          Pdhg::compare(found[i], *first, 1e-6, solvers[i].name);
        } catch (const Failure &failure) {
          wrong[i] = failure.what();
        }
      }
      return wrong;
    };
    return races_.run(solvers, {restart, [&] { return loop.found(); }, judge, save});
  }

 private:
  // Iterations of a graph, of which more are replays.
  static constexpr int LENGTH = 100;

  static void add(std::vector<Solver> &to, const std::string &name,
                  const std::function<Ended(const Run &)> &solve) {
    const bool plans = name.rfind("sparserl", 0) == 0;
    to.push_back({name, solve, plans, false});
    to.push_back({name + IN_GRAPH, solve, plans, true});
  }

  static Wishes wishes(const Run &run) {
    // As a user who knows how many iterations there will be, and nothing else.
    Wishes made;
    made.expected_calls = std::uint64_t(run.iterations);
    made.measure = -1;
    return made;
  }

  // Carries out the iterations.
  Ended ended(const Run &run, const std::function<void()> &restart,
              const std::function<void(int)> &iterate, const Plan<double> *plan = nullptr) const {
    Ended made;
    if (run.in_graph) {
      // A graph keeps the kernels that a plan has when it is captured.
      if (plan) {
        plan->wait();
        made.settled = now();
      }
      const int length = std::min(run.iterations, LENGTH);
      std::unique_ptr<Graph> graph;
      const auto capture = [&] {
        graph = std::make_unique<Graph>(stream_, [&] { iterate(length); });
      };
      try {
        capture();
      } catch (const Failure &) {
        // Perhaps only a first call does what cannot be captured.
        made.is_second_try = true;
        iterate(2);
        restart();
        capture();
      }
      made.nodes = graph->nodes().size();
      made.prepared = now();
      for (int i = 0; i < run.iterations / length; ++i) graph->launch();
      check(cudaDeviceSynchronize());
      made.solved = now();
    } else {
      made.prepared = now();
      iterate(run.iterations);
      check(cudaDeviceSynchronize());
      made.solved = now();
    }
    if (plan) {
      made.why = plan->text(SPARSERL_OP_NONE, SPARSERL_TEXT_WHY);
      // What goes on in the background would disturb who is next.
      plan->wait();
    }
    return made;
  }

  cusparseHandle_t cusparse_;
  cudaStream_t stream_;
  Races races_;
};

#endif
