// What planning takes, over several plans of a context.
#ifndef FIGURES_PLANNING_HPP
#define FIGURES_PLANNING_HPP

#include <vector>

#include "contenders.hpp"

// Seconds of plans of the same matrix, one after the other. Kernels of the first may have to be
// compiled; later ones find them in the cache.
inline Json plans_of(const Machine &machine, const Matrix &a, const Wishes &wishes, double seconds) {
  constexpr int PLANS = 5;
  std::vector<double> matrix, create, ready;
  const double start = now();
  for (int i = 0; i < PLANS && (i < 2 || now() - start < seconds); ++i) {
    const Plan<double> plan(machine.context, a, wishes);
    matrix.push_back(plan.matrix_seconds);
    create.push_back(plan.create_seconds);
    ready.push_back(plan.ready_seconds);
  }
  return Json().put("matrix_s", matrix).put("create_s", create).put("ready_s", ready);
}

// Plain CSR, A alone and with its transpose, and what the policy chooses; beside these a context, and
// the copy of the values alone.
inline Json planning(const Machine &machine, const Settings &settings, const Matrix &a) {
  constexpr int SAMPLES = 5;
  const double seconds = settings.rounds.seconds;
  Wishes plain, both;
  both.transpose_too = 1;
  Wishes chosen{MANY, 0}, both_chosen = chosen;
  both_chosen.transpose_too = 1;
  Json made;
  made.put("csr", plans_of(machine, a, plain, seconds));
  made.put("csr_both", plans_of(machine, a, both, seconds));
  made.put("chosen", plans_of(machine, a, chosen, seconds));
  made.put("chosen_both", plans_of(machine, a, both_chosen, seconds));
  std::vector<double> contexts, copies;
  const Array<double> values(a.values.size());
  for (int i = 0; i < SAMPLES; ++i) {
    double start = now();
    sparserl_context *context = nullptr;
    check(sparserl_context_create(nullptr, &context));
    contexts.push_back(now() - start);
    check(sparserl_context_destroy(context));
    start = now();
    check(cudaMemcpy(values.get(), a.values.data(), a.values.size() * sizeof(double),
                     cudaMemcpyHostToDevice));
    copies.push_back(now() - start);
  }
  return made.put("context_s", contexts).put("values_copied_s", copies);
}

#endif
