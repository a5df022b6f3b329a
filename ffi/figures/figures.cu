// Figures of the C API on a GPU, beside those of cuSPARSE in the same run: what a call costs the
// host and a graph, what products take, new values, the transpose, two solvers, planning, and when it
// has paid.
//
//   nvcc -O2 -std=c++17 -arch=native -I.. figures.cu -L../../target/release -lsparserl -lcusparse -o figures
//   LD_LIBRARY_PATH=../../target/release ./figures [--calls N] [--rounds N] [--race-seconds N]
//       [--seconds N] [--thorough] [--only-products] [--only-solvers] [--only-PART]...
//       matrix.mtx... > figures.jsonl
//
// Each matrix, a Matrix Market file or one of generate.hpp's, gives a line of JSON, with the samples
// that medians are of. Symmetric matrices are expanded, and patterns get random values. Times are in
// microseconds, those of calls on the host in nanoseconds, unless their names say otherwise; what is
// not known is null. All contenders are called in turn. Every result is compared with a product on
// the host, or all solutions with each other: where one is wrong the program ends with status 1.
//
// Each matrix has a process of its own, so that what takes one down leaves the others. A part that
// fails says why in its place. After --seconds the line is printed with what there is by then.
//
// --calls is what plans are told to expect, for which they then measure on the GPU (at least 3 s a
// plan); --thorough also measures for the plans for A and A', which takes some 15 s longer.
// --rounds is how often contenders are called in turn at most, and --race-seconds bounds it.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calls.cuh"
#include "contenders.hpp"
#include "end_to_end.cuh"
#include "generate.hpp"
#include "loops.cuh"
#include "planning.hpp"
#include "products.hpp"
#include "updates.hpp"
#include "watch.hpp"

namespace {

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

constexpr const char *PARTS[] = {"overhead", "graph_nodes", "planning", "f64",  "f32",
                                 "updates",  "updates_both", "both",    "cg",   "pdhg",
                                 "end_to_end"};

// The parts of a matrix, in the order in which they are measured.
class Figures {
 public:
  Figures(const Settings &settings, Line &line, double deadline)
      : settings_(settings), line_(line), deadline_(deadline) {}

  // Whether nothing failed, and nothing was wrong.
  bool run(const std::string &name) {
    const double start = now();
    line_.put("matrix", name.substr(name.find_last_of('/') + 1));
    part("machine", [] { return machine_of(); }, true);
    part("context_s", [&] {
      const double begin = now();
      check(sparserl_context_create(nullptr, &machine_.context));
      const double seconds = now() - begin;
      check(cusparseCreate(&machine_.cusparse));
      check(cudaStreamCreate(&machine_.stream));
      check(cusparseSetStream(machine_.cusparse, machine_.stream));
      return seconds;
    }, true);
    part("read_s", [&] {
      const double begin = now();
      const std::optional<Matrix> generated = generate(name);
      a_ = generated ? *generated : read_market(name);
      return now() - begin;
    }, true);
    if (is_useless_) return false;
    line_.put("rows", a_.rows);
    line_.put("cols", a_.cols);
    line_.put("nnz", double(a_.nnz()));
    measure();
    line_.put("took_s", now() - start);
    if (is_useless_) return false;
    check(cudaStreamDestroy(machine_.stream));
    check(cusparseDestroy(machine_.cusparse));
    check(sparserl_context_destroy(machine_.context));
    return is_right_;
  }

 private:
  void measure() {
    const Matrix &a = a_;
    const bool is_square = a.rows == a.cols;
    part("overhead", [&] { return overhead(machine_, a); });
    part("graph_nodes", [&] { return graph_nodes(machine_, settings_, a); });
    part("planning", [&] { return planning(machine_, settings_, a); });
    part("f64", [&] { return products<double>(machine_, settings_, a); });
    part("f32", [&] { return products<float>(machine_, settings_, a); });
    part("updates", [&] { return updates(machine_, settings_, a, false); });
    part("updates_both", [&] { return updates(machine_, settings_, a, true); });
    part("both", [&] { return both(machine_, settings_, a, transposed(), plan_of_both()); });
    if (is_square)
      part("cg", [&] { return gradients(machine_, settings_, definite(), is_given()); });
    part("pdhg", [&] {
      return primal_dual(machine_, settings_, a, transposed(), plan_of_both());
    });
    plan_of_both_.reset();
    part("end_to_end", [&] {
      EndToEnd solvers(machine_, settings_.rounds, deadline_);
      Json whole;
      const auto saved_as = [&](const char *solver) {
        return [&, solver](const Json &so_far) {
          line_.put("end_to_end", Json(whole).put(solver, so_far));
        };
      };
      if (is_square) whole.put("cg", solvers.gradients(definite(), saved_as("cg")));
      whole.put("pdhg", solvers.primal_dual(a, saved_as("pdhg")));
      is_right_ &= solvers.is_right();
      return whole;
    });
  }

  // Measures a part that is asked for, or does what all others need.
  template <typename Body>
  void part(const std::string &name, const Body &body, bool is_needed = false) {
    const bool is_asked_for = settings_.only.empty() || settings_.only.count(name) > 0;
    if (is_useless_ || !(is_needed || is_asked_for)) return;
    if (now() > deadline_) return line_.put(name, Json().put("left_out", "there is no time for it"));
    const double start = now();
    try {
      line_.put(name, body());
    } catch (const std::exception &failure) {
      std::fprintf(stderr, "error: %s: %s\n", name.c_str(), failure.what());
      line_.put(name + "_failed", std::string(failure.what()));
      is_right_ = false;
      cudaGetLastError();
      // After some errors of a device nothing works any more.
      is_useless_ = is_needed || cudaDeviceSynchronize() != cudaSuccess;
    }
    if (!is_needed) std::fprintf(stderr, "%s: %.1f s\n", name.c_str(), now() - start);
  }

  const Matrix &transposed() {
    if (!transposed_) transposed_ = a_.transposed();
    return *transposed_;
  }
  bool is_given() { return is_dominant(a_, transposed()); }
  // The matrix that conjugate gradients are for.
  const Matrix &definite() {
    if (!definite_) definite_ = is_given() ? a_ : positive_definite(a_);
    return *definite_;
  }
  const Plan<double> &plan_of_both() {
    Wishes wishes{MANY, settings_.thorough ? 1 : 0};
    wishes.transpose_too = 1;
    if (!plan_of_both_)
      plan_of_both_ = std::make_unique<Plan<double>>(machine_.context, a_, wishes);
    return *plan_of_both_;
  }

  const Settings &settings_;
  Line &line_;
  double deadline_;
  Machine machine_;
  Matrix a_;
  std::optional<Matrix> transposed_, definite_;
  std::unique_ptr<Plan<double>> plan_of_both_;
  bool is_right_ = true, is_useless_ = false;
};

// In the process of a matrix.
bool measured(const Settings &settings, const std::string &name) {
  Line line;
  const Watch watch(line, settings.seconds);
  // What is begun late would be cut.
  const double deadline = settings.seconds > 0 ? now() + 0.9 * settings.seconds
                                               : std::numeric_limits<double>::infinity();
  Figures figures(settings, line, deadline);
  bool is_right = false;
  try {
    is_right = figures.run(name);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "error: %s: %s\n", name.c_str(), failure.what());
    line.put("failed", std::string(failure.what()));
  }
  line.print();
  return is_right;
}

// Whether all went well in a process of its own.
bool in_own_process(const Settings &settings, const std::string &name) {
  std::fprintf(stderr, "%s\n", name.c_str());
  std::fflush(nullptr);
  const double start = now();
  const pid_t child = fork();
  if (child < 0) fail("no process can be made");
  if (child == 0) {
    const bool is_right = measured(settings, name);
    // After a failure the libraries may be in no state to be ended.
    if (!is_right) std::_Exit(PRINTED_FAILURE);
    std::exit(EXIT_SUCCESS);
  }
  int status = 0;
  bool is_killed = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    constexpr double GRACE = 10;
    if (settings.seconds > 0 && !is_killed && now() - start > settings.seconds + GRACE) {
      kill(child, SIGKILL);
      is_killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == EXIT_SUCCESS || code == PRINTED_FAILURE) return code == EXIT_SUCCESS;
  Line line;
  line.put("matrix", name.substr(name.find_last_of('/') + 1));
  line.put("failed", code < 0 ? "its process was ended by signal " + std::to_string(WTERMSIG(status))
                              : "its process ended with status " + std::to_string(code));
  line.print();
  return false;
}

struct Arguments {
  Settings settings;
  std::vector<std::string> matrices;
};

Arguments understood(int count, char **arguments) {
  Arguments made;
  Settings &settings = made.settings;
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
    const auto only = [&](const std::string &name) {
      for (const char *part : PARTS) {
        if (name != part) continue;
        settings.only.insert(name);
        return true;
      }
      return false;
    };
    if (argument == "--calls") settings.calls = std::uint64_t(number(1000000000000));
    else if (argument == "--rounds") settings.rounds.most = int(number(1000));
    else if (argument == "--race-seconds") settings.rounds.seconds = double(number(1000000));
    else if (argument == "--seconds") settings.seconds = double(number(1000000));
    else if (argument == "--thorough") settings.thorough = true;
    else if (argument == "--only-solvers") only("end_to_end");
    else if (argument == "--only-products") {
      for (const char *part : PARTS)
        if (part != std::string("end_to_end")) only(part);
    } else if (argument.rfind("--only-", 0) == 0 && only(argument.substr(7))) continue;
    else if (argument.rfind("--", 0) == 0) {
      std::string parts;
      for (const char *part : PARTS) parts += std::string(" ") + part;
      fail(argument + ": expected --calls, --rounds, --race-seconds, --seconds, --thorough, " +
           "--only-products, --only-solvers or --only-PART with one of" + parts);
    } else made.matrices.push_back(argument);
  }
  if (made.matrices.empty())
    fail("expected matrices: Matrix Market files, or " + std::string(GENERATED));
  return made;
}

}  // namespace

int main(int count, char **arguments) {
  try {
    const Arguments asked = understood(count, arguments);
    bool is_right = true;
    for (const std::string &matrix : asked.matrices)
      is_right &= in_own_process(asked.settings, matrix);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const Failure &failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return EXIT_FAILURE;
  }
}
