// Whole solvers in turn, for several numbers of iterations, in as much time as there is.
#ifndef FIGURES_SOLVER_RACES_HPP
#define FIGURES_SOLVER_RACES_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fresh_context.hpp"
#include "json.hpp"
#include "race.hpp"

// What a solver is asked for.
struct Run {
  int iterations;
  sparserl_context *context;
  bool in_graph;
};

// When the plan would not change any more, where that was waited for, when the first iteration could
// begin, and when the last had ended, by now()'s clock.
struct Ended {
  double settled = -1, prepared = 0, solved = 0;
  // Of the graph, if there is one.
  std::size_t nodes = 0;
  // Whether it could be captured only after a first call.
  bool is_second_try = false;
  std::string why = {};
};

struct Solver {
  std::string name;
  std::function<Ended(const Run &)> solve;
  bool plans, in_graph;
  // Why it is not called any more.
  std::string failure = {};
  // The numbers of iterations so far, and the medians of their seconds.
  std::vector<std::pair<int, double>> medians = {};

  // Seconds; 0 where they are not known.
  double predicted(int iterations) const {
    if (medians.size() < 2 || !failure.empty()) return 0;
    const auto &[few, less] = medians[medians.size() - 2];
    const auto &[many, more] = medians.back();
    const double each = std::max(0.0, more - less) / (many - few);
    return std::max(0.0, more + each * (iterations - many));
  }
};

// What solvers have in common.
struct Problem {
  std::function<void()> restart;
  std::function<std::vector<double>()> solution;
  // What is wrong with solutions, which have to agree; an empty one is none.
  std::function<std::vector<std::string>(const std::vector<std::vector<double>> &)> judge;
  // Is given all there is, after each number of iterations.
  std::function<void(const Json &)> save;
};

class Races {
 public:
  // Rounds are as many as there may be, or as fit the seconds. No race begins that would not end by
  // `deadline`, as far as can be told before.
  Races(const Rounds &rounds, double deadline) : rounds_(rounds), deadline_(deadline) {}

  // Whether no plan failed, and no solution was wrong.
  bool is_right() const { return is_right_; }

  // Of each number of iterations, seconds in all and until the first could begin. In the first round
  // a plan finds nothing in the cache, in later ones what the round before has left there. Then
  // fewer iterations again, with what those of 10,000 have left.
  //
  // A solver in a graph comes behind the one in the stream, whose context it has.
  Json run(std::vector<Solver> &solvers, const Problem &problem) {
    Json made;
    const FreshContext warm;
    // Loads the libraries' own kernels, and tells what cannot be captured.
    for (Solver &solver : solvers)
      attempt(solver, [&] {
        problem.restart();
        solver.solve({2, warm.get(), solver.in_graph});
      });
    Contexts contexts(solvers.size());
    const auto put = [&](const std::string &name, int iterations, bool has_first) {
      made.put(name, race(solvers, contexts, iterations, has_first, problem));
      problem.save(made);
    };
    for (const int iterations : {10, 100, 1000, 10000}) {
      for (std::size_t i = 0; i < solvers.size(); ++i)
        if (solvers[i].plans && !solvers[i].in_graph) contexts[i] = std::make_unique<FreshContext>();
      put(std::to_string(iterations), iterations, true);
    }
    put("1000_after_10000", 1000, false);
    return made;
  }

 private:
  using Contexts = std::vector<std::unique_ptr<FreshContext>>;

  static constexpr const char *NO_TIME = "there is no time for it";
  // What an iteration takes in a graph is known from so many: more are left out where they take long.
  static constexpr int ALWAYS_IN_GRAPHS = 1000;

  struct Samples {
    std::vector<double> later, all, until_first_iteration, until_settled;
    Ended last;
    bool has_first = false;
  };

  template <typename Body>
  void attempt(Solver &solver, const Body &body) {
    try {
      body();
    } catch (const Failure &failure) {
      solver.failure = failure.what();
      // A refusal of cuSPARSE's is a result.
      if (solver.plans) is_right_ = false;
      cudaGetLastError();
      // After some errors nothing works any more.
      check(cudaDeviceSynchronize());
    }
  }

  Json race(std::vector<Solver> &solvers, const Contexts &contexts, int iterations, bool has_first,
            const Problem &problem) {
    const double begin = now();
    double in_streams = 0, in_graphs = 0;
    for (const Solver &solver : solvers) {
      const double seconds = solver.predicted(iterations);
      if (solver.in_graph) in_graphs += seconds;
      else in_streams += solver.plans && has_first ? 2 * seconds : seconds;
    }
    // Those with what more iterations have left are the first to be left out.
    const bool is_needed = has_first || in_streams <= rounds_.seconds;
    if (!is_needed || begin + in_streams > deadline_) return Json().put("left_out", NO_TIME);
    const bool has_graphs =
        (has_first && iterations <= ALWAYS_IN_GRAPHS) || in_streams + in_graphs <= rounds_.seconds;
    std::vector<Samples> samples(solvers.size());
    std::vector<std::vector<double>> found(solvers.size());
    double last_round = 0;
    for (int round = has_first ? 0 : 1; round <= rounds_.most; ++round) {
      const double round_begin = now();
      const double end = std::min(begin + rounds_.seconds, deadline_);
      if (round > 1 && round_begin + last_round > end) break;
      for (std::size_t turn = 0; turn < solvers.size(); ++turn) {
        const std::size_t i = (turn + std::size_t(round)) % solvers.size();
        Solver &solver = solvers[i];
        if (!solver.failure.empty() || (solver.in_graph && !has_graphs)) continue;
        // Only plans have something to find in a cache, or not.
        if (round == 0 && (!solver.plans || solver.in_graph)) continue;
        const auto *context = contexts[i - (solver.in_graph ? 1 : 0)].get();
        attempt(solver, [&] {
          sample(solver, {iterations, context ? context->get() : nullptr, solver.in_graph}, round == 0,
                 problem, samples[i]);
          found[i] = problem.solution();
        });
      }
      last_round = now() - round_begin;
    }
    const std::vector<std::string> wrong = problem.judge(found);
    Json by_solver;
    for (std::size_t i = 0; i < solvers.size(); ++i) {
      Json one;
      if (!solvers[i].failure.empty()) one.put("failure", solvers[i].failure);
      else if (samples[i].all.empty()) one.put("left_out", NO_TIME);
      if (!wrong[i].empty()) {
        one.put("wrong", wrong[i]);
        is_right_ = false;
      }
      if (!samples[i].later.empty())
        solvers[i].medians.emplace_back(iterations, median(samples[i].later));
      by_solver.put(solvers[i].name, described(samples[i], solvers[i], one));
    }
    return by_solver;
  }

  static void sample(const Solver &solver, const Run &run, bool is_first, const Problem &problem,
                     Samples &samples) {
    problem.restart();
    check(cudaDeviceSynchronize());
    const double start = now();
    const Ended ended = solver.solve(run);
    const double seconds = ended.solved - start;
    samples.has_first |= is_first;
    samples.all.push_back(seconds);
    if (!is_first) samples.later.push_back(seconds);
    samples.until_first_iteration.push_back(ended.prepared - start);
    if (ended.settled >= 0) samples.until_settled.push_back(ended.settled - start);
    samples.last = ended;
  }

  static Json described(const Samples &samples, const Solver &solver, Json one) {
    if (samples.all.empty()) return one;
    if (samples.has_first) one.put("first_s", samples.all[0]);
    one.put_known("later_s", median(samples.later)).put("all_s", samples.all);
    one.put("until_first_iteration_s", samples.until_first_iteration);
    if (!samples.until_settled.empty()) one.put("until_settled_s", samples.until_settled);
    if (solver.in_graph) {
      one.put("nodes", double(samples.last.nodes));
      one.put("captured_after_a_call", samples.last.is_second_try);
    }
    if (!samples.last.why.empty()) one.put("why", samples.last.why);
    return one;
  }

  Rounds rounds_;
  double deadline_;
  bool is_right_ = true;
};

#endif
