// New values for a plan, of A alone and of A with its transpose.
#ifndef FIGURES_UPDATES_HPP
#define FIGURES_UPDATES_HPP

#include <string>
#include <vector>

#include "contenders.hpp"

// The times of updates as multiples of that of the product A x by the same plan.
inline Json relative_to_product(const std::vector<Contender> &raced) {
  const double product = median_of(raced, "product");
  Json made;
  for (const Contender &contender : raced) {
    const double time = median(contender.samples);
    if (contender.name != "product") made.put_known(contender.name, product > 0 ? time / product : -1);
  }
  return made;
}

// Times of new values by one plan, and of its products with them.
inline Json updates(const Machine &machine, const Settings &settings, const Matrix &a,
                    bool transpose_too) {
  Wishes wishes{MANY, 0};
  wishes.values_variable = 1;
  wishes.transpose_too = transpose_too ? 1 : 0;
  const Plan<double> plan(machine.context, a, wishes);
  Matrix other = a;
  other.values = Random(5).vector(a.values.size(), 0.5, 1.5);
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const std::vector<double> y_host = Random(6).vector(std::size_t(a.rows), -1, 1);
  const Array<double> x(x_host), y(y_host);
  const Array<double> ax(std::vector<double>(std::size_t(a.rows)));
  const Array<double> aty(std::vector<double>(std::size_t(a.cols)));
  const Array<double> first(a.values), second(other.values);
  const std::vector<Contender> forward{
      {"product", [&] { plan.multiply(machine.stream, 0, ONE, x.get(), ZERO, ax.get()); }}};
  std::vector<Contender> backward;
  if (transpose_too)
    backward.push_back({"transposed_product", [&] {
                          plan.multiply(machine.stream, 1, ONE, y.get(), ZERO, aty.get());
                        }});
  const auto verify_both = [&](const Matrix &current, const std::string &when) {
    verify(forward, ax, Reference<double>(current, x_host), "z = A x " + when);
    if (transpose_too)
      verify(backward, aty, Reference<double>(current.transposed(), y_host), "z = A' y " + when);
  };
  verify_both(a, "with the first values");
  plan.update(machine.stream, second.get(), SPARSERL_DEVICE);
  verify_both(other, "after an update on the device");
  plan.update(machine.stream, a.values.data(), SPARSERL_HOST);
  verify_both(a, "after an update from the host");
  std::vector<Contender> raced = forward;
  append(raced, backward);
  raced.push_back({"update_on_device",
                   [&] { plan.update(machine.stream, first.get(), SPARSERL_DEVICE); }});
  const std::vector<Contender> captured = raced;
  race(machine.stream, raced, settings.rounds, 100);
  // That from the host waits for the stream, so its time is the host's.
  constexpr int CALLS = 10;
  std::vector<Contender> from_host{
      {"update_from_host", [&] { plan.update(machine.stream, a.values.data(), SPARSERL_HOST); }}};
  in_turn(from_host, settings.rounds, [&](Contender &update) {
    check(cudaStreamSynchronize(machine.stream));
    const double start = now();
    for (int i = 0; i < CALLS; ++i) update.call();
    update.samples.push_back(1e6 * (now() - start) / CALLS);
  });
  append(raced, from_host);
  // Last, since a plan swaps no kernel any more once an update was captured.
  const std::vector<Contender> in_graphs =
      race_in_graphs(machine.stream, captured, settings.rounds, 100, 1);
  verify_both(a, "after updates in a graph");
  Json made;
  made.put("plan", plan_of(plan));
  if (transpose_too) made.put("plan_of_transpose", plan_of(plan, SPARSERL_OP_TRANSPOSE));
  made.put("us", results_of(raced)).put("relative_to_product", relative_to_product(raced));
  made.put("in_graphs_us", results_of(in_graphs));
  return made.put("relative_to_product_in_graphs", relative_to_product(in_graphs));
}

#endif
