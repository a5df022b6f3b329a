// Products with A, with its transpose, and when planning has paid.
#ifndef FIGURES_PRODUCTS_HPP
#define FIGURES_PRODUCTS_HPP

#include <cmath>
#include <string>
#include <vector>

#include "contenders.hpp"

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

template <typename T>
Json products(const Machine &machine, const Settings &settings, const Matrix &a) {
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const Array<T> x(x_host), z(std::vector<T>(std::size_t(a.rows)));
  const Wishes measured{settings.calls, 1};
  const Plan<T> plan(machine.context, a, measured);
  const Plan<T> chosen(machine.context, a, {MANY, 0});
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
  const std::vector<Contender> in_graphs =
      race_in_graphs(machine.stream, raced, settings.rounds, 100, PRODUCTS / 100);
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

// A and its transpose by one plan.
inline Json both(const Machine &machine, const Settings &settings, const Matrix &a,
                 const Matrix &transposed, const Plan<double> &plan) {
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
  const auto graphs = [&](const std::vector<Contender> &raced) {
    return results_of(race_in_graphs(machine.stream, raced, settings.rounds, 100, PRODUCTS / 100));
  };
  return Json()
      .put("plan", plan_of(plan))
      .put("plan_of_transpose", plan_of(plan, SPARSERL_OP_TRANSPOSE))
      .put("a_in_graphs_us", graphs(forward))
      .put("transpose_in_graphs_us", graphs(backward));
}

#endif
