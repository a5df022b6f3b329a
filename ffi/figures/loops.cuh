// The two solvers' loops, with products that are ready: conjugate gradients, and a primal-dual method.
#ifndef FIGURES_LOOPS_CUH
#define FIGURES_LOOPS_CUH

#include <vector>

#include "contenders.hpp"
#include "solvers.cuh"

constexpr int ITERATIONS = 1000;

// Conjugate gradients.
inline Json gradients(const Machine &machine, const Settings &settings, const Matrix &a,
                      bool is_given) {
  const std::vector<double> b = Random(7).vector(std::size_t(a.rows), -1, 1);
  const Plan<double> plan(machine.context, a, {settings.calls, 1});
  Cg cg(machine.stream, b);
  const Csr<double> csr(a);
  const Ways<double> cusparse(machine, {csr, false, ONE, cg.p.get(), ZERO, cg.q.get()});
  std::vector<Contender> made_of{
      {"sparserl", [&] { plan.multiply(machine.stream, 0, ONE, cg.p.get(), ZERO, cg.q.get()); }},
      {"no_product", [] {}},
  };
  append(made_of, cusparse.contenders);
  // Iterations come in pairs: those behind another have their sums in another place.
  constexpr int PAIR = 2;
  std::vector<Contender> loops, pairs;
  for (const Contender &product : made_of) {
    Contender loop{product.name, nullptr, {}, product.refusal}, pair = loop;
    if (product.call) {
      loop.call = [&cg, call = product.call] { cg.iterate(ITERATIONS, call); };
      pair.call = [&cg, call = product.call] { cg.iterate(PAIR, call); };
    }
    loops.push_back(loop);
    pairs.push_back(pair);
  }
  race_loops(loops, settings.rounds, [&] { cg.restart(); });
  cg.restart();
  std::vector<Contender> in_graphs =
      race_in_graphs(machine.stream, pairs, settings.rounds, 100 / PAIR, ITERATIONS / 100);
  for (Contender &contender : in_graphs)
    for (double &sample : contender.samples) sample /= PAIR;
  Json made;
  made.put("rows", a.rows).put("nnz", double(a.nnz())).put("as_given", is_given);
  made.put("plan", plan_of(plan)).put("loop_s", results_of(loops));
  made.put("iteration_in_graphs_us", results_of(in_graphs));
  Residuals residuals(a, b);
  for (const Contender &loop : loops) {
    if (!loop.call || loop.name == "no_product") continue;
    cg.restart();
    loop.call();
    residuals.add(loop.name, cg.x.host());
  }
  made.put("residuals", residuals.all());
  for (const Contender &loop : loops)
    if (residuals.is_apart(loop.name)) fail("residuals do not agree: " + residuals.all().line());
  return made;
}

// A primal-dual method, with its projections fused into the products or after them.
inline Json primal_dual(const Machine &machine, const Settings &settings, const Matrix &a,
                        const Matrix &transposed, const Plan<double> &plan) {
  Wishes wishes{MANY, settings.thorough ? 1 : 0};
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
    try {
      const auto back = way.prepare({stored, false, tau, y, ONE, x});
      const auto forth = way.prepare({csr, false, -tau, x, ONE, y});
      steps.push_back(
          {way.name, [&loop, stream, back, forth] { loop.step(stream, *back, *forth); }});
    } catch (const Failure &failure) {
      steps.push_back({way.name, nullptr, {}, failure.what()});
    }
  }
  constexpr int FEW = 10;
  const std::vector<double> right = loop.on_host(a, FEW);
  std::vector<Contender> loops;
  std::vector<double> after_all;
  for (const Contender &step : steps) {
    Contender whole{step.name, nullptr, {}, step.refusal};
    if (step.call) {
      loop.restart();
      for (int i = 0; i < FEW; ++i) step.call();
      Pdhg::compare(loop.found(), right, 1e-10, step.name);
      for (int i = FEW; i < ITERATIONS; ++i) step.call();
      const std::vector<double> found = loop.found();
      if (after_all.empty()) after_all = found;
      Pdhg::compare(found, after_all, 1e-6, step.name);
      whole.call = [&step] {
        for (int i = 0; i < ITERATIONS; ++i) step.call();
      };
    }
    loops.push_back(whole);
  }
  race_loops(loops, settings.rounds, [&] { loop.restart(); });
  const std::vector<Contender> in_graphs =
      race_in_graphs(stream, steps, settings.rounds, 100, ITERATIONS / 100);
  return Json()
      .put("fused", plan_of(fused))
      .put("fused_transpose", plan_of(fused, SPARSERL_OP_TRANSPOSE))
      .put("separate", plan_of(plan))
      .put("separate_transpose", plan_of(plan, SPARSERL_OP_TRANSPOSE))
      .put("loop_s", results_of(loops))
      .put("iteration_in_graphs_us", results_of(in_graphs));
}

#endif
