// What a call costs the host, and what it is as a node of a graph.
#ifndef FIGURES_CALLS_CUH
#define FIGURES_CALLS_CUH

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bare_kernel.hpp"
#include "contenders.hpp"
#include "graph.hpp"

__global__ void empty_kernel() {}

// Every sample, as the nanoseconds that there were and how often.
inline Json counted(const std::vector<double> &samples) {
  std::map<double, int> counts;
  for (const double sample : samples) ++counts[std::round(sample)];
  std::vector<double> nanoseconds, count;
  for (const auto &one : counts) {
    nanoseconds.push_back(one.first);
    count.push_back(one.second);
  }
  return Json().put("ns", nanoseconds).put("count", count);
}

// What 10,000 calls cost the host, in nanoseconds: each is timed, and each batch of them.
inline Json overhead(const Machine &machine, const Matrix &a) {
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
  contenders.push_back({"empty_kernel", [&] { empty_kernel<<<1, 32, 0, stream>>>(); }});
  std::vector<Contender> batches;
  for (Contender &contender : contenders) {
    batches.push_back({contender.name, contender.call, {}, contender.refusal});
    for (int i = 0; contender.call && i < BATCH; ++i) contender.call();
  }
  in_turn(batches, {BATCHES, 20}, [&](Contender &batch) {
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
    std::vector<double> calls = contenders[i].samples;
    Json one;
    if (calls.empty()) {
      made.put(contenders[i].name, one.put("refused", contenders[i].refusal));
      continue;
    }
    std::sort(calls.begin(), calls.end());
    one.put("median_ns", median(calls)).put("p99_ns", calls[calls.size() * 99 / 100]);
    one.put("batch_means_ns", batches[i].samples).put("calls", counted(calls));
    made.put(contenders[i].name, one);
  }
  return made;
}

// A graph of 1,000 products beside one of the same kernel without the library: what they are, what
// the host takes to make and to launch them, and what the GPU takes for each product.
inline Json graph_nodes(const Machine &machine, const Settings &settings, const Matrix &a) {
  constexpr int CALLS = 1000, LAUNCHES = 10, CAPTURES = 5;
  const std::vector<double> x_host = Random(2).vector(std::size_t(a.cols), -1, 1);
  const Array<double> x(x_host), z(std::vector<double>(std::size_t(a.rows)));
  // Plain CSR, of which no kernel is swapped.
  const Plan<double> plan(machine.context, a, {});
  const Csr<double> csr(a);
  cudaStream_t stream = machine.stream;
  const auto multiply = [&] { plan.multiply(stream, 0, ONE, x.get(), ZERO, z.get()); };
  std::vector<Contender> contenders{{"sparserl_execute", multiply}};
  const Graph two(stream, [&] {
    multiply();
    multiply();
  });
  const std::vector<cudaGraphNode_t> kernels = two.kernels();
  const bool is_programmatic = two.programmatic_edges() > 0;
  std::unique_ptr<BareKernel> bare;
  std::string refusal;
  try {
    if (kernels.size() != 2 || two.nodes().size() != 2) fail("a product is more than one kernel");
    const std::string cubin = plan.text(SPARSERL_OP_NONE, SPARSERL_TEXT_CUBIN);
    bare = std::make_unique<BareKernel>(kernels[0], cubin);
    contenders.push_back({"cuLaunchKernel", [&] { bare->launch(stream); }});
    // A kernel that does not wait for those before it must not be launched so.
    if (is_programmatic)
      contenders.push_back({"cuLaunchKernelEx", [&] { bare->launch_programmatic(stream); }});
  } catch (const Failure &failure) {
    refusal = failure.what();
    contenders.push_back({"cuLaunchKernel", nullptr, {}, refusal});
  }
  append(contenders, Ways<double>(machine, {csr, false, ONE, x.get(), ZERO, z.get()}).contenders);
  verify(contenders, z, Reference<double>(a, x_host), "z = A x");
  contenders.push_back({"empty_kernel", [&] { empty_kernel<<<1, 32, 0, stream>>>(); }});
  Json graphs;
  std::vector<Contender> launches;
  for (Contender &contender : contenders) {
    Json one;
    Contender launch{contender.name, nullptr, {}, contender.refusal};
    try {
      std::vector<double> capture, instantiate;
      for (int i = 0; contender.call && i < CAPTURES; ++i) {
        const auto graph = std::make_shared<Graph>(stream, [&] {
          for (int k = 0; k < CALLS; ++k) contender.call();
        });
        capture.push_back(1e6 * graph->capture_seconds / CALLS);
        instantiate.push_back(1e6 * graph->instantiate_seconds / CALLS);
        if (i > 0) continue;
        launch.call = [graph] { graph->launch(); };
        one.put("calls", CALLS).put("nodes", double(graph->nodes().size()));
        one.put("kernel_nodes", double(graph->kernels().size()));
        one.put("programmatic_edges", double(graph->programmatic_edges()));
      }
      one.put("capture_us_a_call", capture).put("instantiate_us_a_call", instantiate);
    } catch (const Failure &failure) {
      launch.call = nullptr;
      launch.refusal = failure.what();
    }
    graphs.put(contender.name, one);
    launches.push_back(launch);
  }
  std::vector<Contender> on_host;
  for (const Contender &launch : launches)
    on_host.push_back({launch.name, launch.call, {}, launch.refusal});
  race(stream, launches, settings.rounds, LAUNCHES);
  for (Contender &launch : launches)
    for (double &sample : launch.samples) sample /= CALLS;
  in_turn(on_host, settings.rounds, [&](Contender &launch) {
    check(cudaStreamSynchronize(stream));
    const double start = now();
    launch.call();
    launch.samples.push_back(1e6 * (now() - start));
  });
  check(cudaStreamSynchronize(stream));
  return Json()
      .put("plan", plan_of(plan))
      .put("graphs", graphs)
      .put("us_a_call", results_of(launches))
      .put("launch_on_host_us", results_of(on_host));
}

#endif
