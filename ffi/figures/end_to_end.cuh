// Solvers from a matrix in the host's memory until their last iteration: planning, copying and
// preparing included.
#ifndef FIGURES_END_TO_END_CUH
#define FIGURES_END_TO_END_CUH

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cusparse.hpp"
#include "device.hpp"
#include "json.hpp"
#include "race.hpp"
#include "solvers.cuh"

// A context with a cache folder of its own, empty at first, which is removed with it.
class FreshContext {
 public:
  FreshContext() {
    std::string folder = (std::filesystem::temp_directory_path() / "figures-XXXXXX").string();
    if (!mkdtemp(folder.data())) fail(folder + ": cannot be made");
    folder_ = folder;
    sparserl_options *options = nullptr;
    check(sparserl_options_create(&options));
    check(sparserl_options_set(options, SPARSERL_OPTION_CACHE_FOLDER, folder.data(), folder.size()));
    check(sparserl_context_create(options, &context_));
    check(sparserl_options_destroy(options));
  }
  FreshContext(const FreshContext &) = delete;
  FreshContext &operator=(const FreshContext &) = delete;
  ~FreshContext() {
    check(sparserl_context_destroy(context_));
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  sparserl_context *get() const { return context_; }

 private:
  std::filesystem::path folder_;
  sparserl_context *context_ = nullptr;
};

class EndToEnd {
 public:
  EndToEnd(cusparseHandle_t cusparse, cudaStream_t stream, int rounds)
      : cusparse_(cusparse), stream_(stream), rounds_(rounds) {}

  // Conjugate gradients: one product an iteration.
  Json gradients(const Matrix &a) const {
    const std::vector<double> b = Random(7).vector(std::size_t(a.rows), -1, 1);
    Cg cg(stream_, b);
    const double *p = cg.p.get();
    double *q = cg.q.get();
    std::vector<Solver> solvers{{"sparserl", [&](const Run &run) {
                                   const Plan<double> plan(run.context, a, wishes(run), BACKGROUND);
                                   const double prepared = now();
                                   cg.iterate(run.iterations, [&] {
                                     plan.multiply(stream_, SPARSERL_OP_NONE, 1, p, 0, q);
                                   });
                                   return ended(prepared, {&plan});
                                 }}};
    for (const Way<double> &way : ways<double>(cusparse_))
      solvers.push_back({way.name, [&, way](const Run &run) {
                           const Csr<double> csr(a);
                           const auto product = way.prepare({csr, false, 1, p, 0, q});
                           const double prepared = now();
                           cg.iterate(run.iterations, [&] { product->multiply(); });
                           return ended(prepared, {});
                         }});
    const Compare compare = [&](const std::vector<std::vector<double>> &found) {
      Residuals residuals(a, b);
      for (std::size_t i = 0; i < found.size(); ++i) residuals.add(solvers[i].name, found[i]);
      residuals.checked();
    };
    return races(solvers, [&] { cg.restart(); }, [&] { return cg.x.host(); }, compare);
  }

  // A primal-dual method: a product with A and one with its transpose an iteration.
  Json primal_dual(const Matrix &a) const {
    Pdhg loop(a);
    double *x = loop.x.get(), *y = loop.y.get();
    const double tau = loop.tau;
    const auto by_plan = [&](bool is_fused) {
      return [&, is_fused](const Run &run) {
        Wishes wished = wishes(run);
        wished.transpose_too = 1;
        if (is_fused) {
          wished.epilogue = PROJECTION;
          wished.user = PROJECTION_USER;
        }
        const Plan<double> plan(run.context, a, wished, BACKGROUND);
        const double prepared = now();
        for (int i = 0; i < run.iterations; ++i) loop.step(stream_, plan, is_fused);
        return ended(prepared, {&plan});
      };
    };
    std::vector<Solver> solvers{{"sparserl_fused", by_plan(true)},
                                {"sparserl_separate", by_plan(false)}};
    const auto iterate = [&](const Run &run, const Product<double> &back, const Product<double> &forth) {
      const double prepared = now();
      for (int i = 0; i < run.iterations; ++i) loop.step(stream_, back, forth);
      return ended(prepared, {});
    };
    for (const Way<double> &way : ways<double>(cusparse_))
      solvers.push_back({way.name, [&, way](const Run &run) {
                           const Csr<double> csr(a);
                           const auto stored = csr.transposed(cusparse_);
                           const auto back = way.prepare({*stored, false, tau, y, 1, x});
                           const auto forth = way.prepare({csr, false, -tau, x, 1, y});
                           return iterate(run, *back, *forth);
                         }});
    solvers.push_back({"cusparse_transpose_op", [&](const Run &run) {
                         const Csr<double> csr(a);
                         const SpMV<double> back(cusparse_, {csr, true, tau, y, 1, x},
                                                 CUSPARSE_SPMV_ALG_DEFAULT);
                         const SpMV<double> forth(cusparse_, {csr, false, -tau, x, 1, y},
                                                  CUSPARSE_SPMV_ALG_DEFAULT);
                         return iterate(run, back, forth);
                       }});
    const Compare compare = [&](const std::vector<std::vector<double>> &found) {
      for (std::size_t i = 0; i < found.size(); ++i)
        loop.compare(found[i], found[0], 1e-6, solvers[i].name);
    };
    return races(solvers, [&] { loop.restart(); }, [&] { return loop.found(); }, compare);
  }

 private:
  static constexpr Search BACKGROUND = Search::InBackground;

  struct Run {
    int iterations;
    sparserl_context *context;
  };
  // When the first iteration could begin and when the last had ended, by now()'s clock.
  struct Ended {
    double prepared, solved;
    std::string why;
  };
  struct Solver {
    std::string name;
    std::function<Ended(const Run &)> solve;

    bool plans() const { return name.rfind("sparserl", 0) == 0; }
  };

  static Wishes wishes(const Run &run) {
    // As a user who knows how many iterations there will be, and nothing else.
    Wishes made;
    made.expected_calls = std::uint64_t(run.iterations);
    made.measure = -1;
    return made;
  }

  static Ended ended(double prepared, const std::vector<const Plan<double> *> &plans) {
    check(cudaDeviceSynchronize());
    Ended made{prepared, now(), ""};
    for (const Plan<double> *plan : plans) {
      made.why = plan->text(SPARSERL_OP_NONE, SPARSERL_TEXT_WHY);
      // What goes on in the background would disturb who is next.
      plan->wait();
    }
    return made;
  }

  using Compare = std::function<void(const std::vector<std::vector<double>> &)>;
  // Those of solvers that plan.
  using Contexts = std::vector<std::unique_ptr<FreshContext>>;

  // Of each number of iterations, seconds in all and until the first could begin. In the first round
  // a plan finds nothing in the cache, in later ones what the round before has left there. Then
  // fewer iterations again, with what those of 10,000 have left.
  Json races(const std::vector<Solver> &solvers, const std::function<void()> &restart,
             const std::function<std::vector<double>()> &solution, const Compare &compare) const {
    Json made;
    // Loads the libraries' own kernels.
    const FreshContext warm;
    for (const Solver &solver : solvers) solver.solve({2, warm.get()});
    Contexts contexts(solvers.size());
    const auto put = [&](const std::string &name, int iterations, bool has_first) {
      made.put(name, race(solvers, contexts, iterations, has_first, restart, solution, compare));
    };
    for (const int iterations : {10, 100, 1000, 10000}) {
      for (std::size_t i = 0; i < solvers.size(); ++i)
        if (solvers[i].plans()) contexts[i] = std::make_unique<FreshContext>();
      put(std::to_string(iterations), iterations, true);
    }
    for (const int iterations : {100, 1000})
      put(std::to_string(iterations) + "_after_10000", iterations, false);
    return made;
  }

  // What solvers found has to agree.
  Json race(const std::vector<Solver> &solvers, const Contexts &contexts, int iterations, bool has_first,
            const std::function<void()> &restart, const std::function<std::vector<double>()> &solution,
            const Compare &compare) const {
    std::vector<std::vector<double>> all(solvers.size()), until_prepared(solvers.size());
    std::vector<std::string> why(solvers.size());
    std::vector<std::vector<double>> found(solvers.size());
    for (int round = has_first ? 0 : 1; round <= rounds_; ++round)
      for (std::size_t turn = 0; turn < solvers.size(); ++turn) {
        const std::size_t i = (turn + std::size_t(round)) % solvers.size();
        restart();
        check(cudaDeviceSynchronize());
        const double start = now();
        const auto *context = contexts[i].get();
        const Ended ended = solvers[i].solve({iterations, context ? context->get() : nullptr});
        all[i].push_back(ended.solved - start);
        until_prepared[i].push_back(ended.prepared - start);
        why[i] = ended.why;
        found[i] = solution();
      }
    compare(found);
    Json by_solver;
    for (std::size_t i = 0; i < solvers.size(); ++i) {
      const std::vector<double> later(all[i].begin() + (has_first ? 1 : 0), all[i].end());
      Json one;
      if (has_first) one.put("first_s", all[i][0]);
      one.put("later_s", median(later)).put("all_s", all[i]);
      one.put("until_first_iteration_s", until_prepared[i]);
      if (!why[i].empty()) one.put("why", why[i]);
      by_solver.put(solvers[i].name, one);
    }
    return by_solver;
  }

  cusparseHandle_t cusparse_;
  cudaStream_t stream_;
  int rounds_;
};

#endif
