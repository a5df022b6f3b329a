// What the parts have in common: where they run, whom they call, and what they say of plans.
#ifndef FIGURES_CONTENDERS_HPP
#define FIGURES_CONTENDERS_HPP

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cusparse.hpp"
#include "device.hpp"
#include "json.hpp"
#include "matrix.hpp"
#include "race.hpp"

struct Settings {
  std::uint64_t calls = 200000;
  Rounds rounds;
  // Of a matrix; 0 for as long as it takes.
  double seconds = 0;
  bool thorough = false;
  // Names of parts; all where there are none.
  std::set<std::string> only;
};

// Where everything runs.
struct Machine {
  sparserl_context *context = nullptr;
  cusparseHandle_t cusparse = nullptr;
  cudaStream_t stream = nullptr;
};

constexpr int PRODUCTS = 1000;
constexpr double ONE = 1, ZERO = 0;
// Calls that pay for a choice by the policy, which is not measured then.
constexpr std::uint64_t MANY = 1000000;

// Negative where it is not known.
inline double median_of(const std::vector<Contender> &contenders, const std::string &name) {
  for (const Contender &contender : contenders)
    if (contender.name == name) return median(contender.samples);
  return -1;
}

inline double fastest_cusparse(const std::vector<Contender> &contenders) {
  double best = -1;
  for (const Contender &contender : contenders) {
    if (contender.name.rfind("cusparse", 0) != 0 || contender.samples.empty()) continue;
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

// Has each contender compute its z, and compares it.
template <typename T>
void verify(const std::vector<Contender> &contenders, const Array<T> &z, const Reference<T> &right,
            const std::string &what) {
  for (const Contender &contender : contenders) {
    if (!contender.call) continue;
    // No zeros, which a kernel that does nothing would get away with.
    if (!right.sums.empty())
      check(cudaMemset(z.get(), 0x40, right.sums.size() * sizeof(T)));
    check(cudaDeviceSynchronize());
    contender.call();
    right.check(z.host(), what + " by " + contender.name);
  }
}

// cuSPARSE's ways to z = alpha A x + beta z, and what their preparation took. One that cannot be
// prepared says why.
template <typename T>
struct Ways {
  std::vector<Contender> contenders;
  Json preprocess_seconds;

  Ways(const Machine &machine, const Operands<T> &operands, const std::string &suffix = "") {
    for (const Way<T> &way : ways<T>(machine.cusparse)) {
      try {
        const auto product = way.prepare(operands);
        preprocess_seconds.put(way.name, product->preprocess_seconds);
        contenders.push_back({way.name + suffix, [product] { product->multiply(); }});
      } catch (const Failure &failure) {
        contenders.push_back({way.name + suffix, nullptr, {}, failure.what()});
      }
    }
  }
};

inline void append(std::vector<Contender> &to, const std::vector<Contender> &from) {
  to.insert(to.end(), from.begin(), from.end());
}

#endif
