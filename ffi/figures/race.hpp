// How calls of several libraries are timed in turn.
#ifndef FIGURES_RACE_HPP
#define FIGURES_RACE_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "device.hpp"
#include "json.hpp"

// Something to be timed, by the name that it has in the output.
struct Contender {
  std::string name;
  std::function<void()> call;
  std::vector<double> samples = {};
};

inline double median(std::vector<double> samples) {
  if (samples.empty()) return -1;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

// Has each contender called in turn, so that all see the same clocks; begins with another one in
// each round.
inline void in_turn(std::vector<Contender> &contenders, int rounds,
                    const std::function<void(Contender &)> &sample) {
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i)
      sample(contenders[(i + std::size_t(round)) % contenders.size()]);
}

// GPU time, in microseconds a call, of `calls` calls in a stream: a sample a round.
inline void race(cudaStream_t stream, std::vector<Contender> &contenders, int rounds, int calls) {
  cudaEvent_t events[2];
  for (cudaEvent_t &event : events) check(cudaEventCreate(&event));
  for (Contender &contender : contenders)
    for (int i = 0; i < std::min(calls, 20); ++i) contender.call();
  in_turn(contenders, rounds, [&](Contender &contender) {
    check(cudaStreamSynchronize(stream));
    check(cudaEventRecord(events[0], stream));
    for (int i = 0; i < calls; ++i) contender.call();
    check(cudaEventRecord(events[1], stream));
    check(cudaEventSynchronize(events[1]));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    contender.samples.push_back(1e3 * double(milliseconds) / calls);
  });
  for (const cudaEvent_t event : events) check(cudaEventDestroy(event));
}

// The same of calls in a CUDA graph of `length` of them, which is launched `launches` times: what the
// GPU takes where the host is out of the way.
inline void race_in_graphs(cudaStream_t stream, const std::vector<Contender> &contenders, int rounds,
                           int length, int launches, std::vector<Contender> &results) {
  std::vector<cudaGraphExec_t> graphs;
  for (const Contender &contender : contenders) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < length; ++i) contender.call();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphDestroy(graph));
    graphs.push_back(executable);
    const auto launch = [executable, stream] { check(cudaGraphLaunch(executable, stream)); };
    results.push_back({contender.name, launch});
  }
  race(stream, results, rounds, launches);
  for (Contender &result : results)
    for (double &sample : result.samples) sample /= length;
  for (const cudaGraphExec_t graph : graphs) check(cudaGraphExecDestroy(graph));
}

// Seconds of whole loops in turn, from their first call until the GPU is done.
inline void race_loops(std::vector<Contender> &loops, int rounds,
                       const std::function<void()> &restart) {
  in_turn(loops, rounds + 1, [&](Contender &loop) {
    restart();
    check(cudaDeviceSynchronize());
    const double start = now();
    loop.call();
    check(cudaDeviceSynchronize());
    loop.samples.push_back(now() - start);
  });
  // The first round warms up.
  for (Contender &loop : loops) loop.samples.erase(loop.samples.begin());
}

// The medians, and the samples.
inline Json results_of(const std::vector<Contender> &contenders) {
  Json medians, samples;
  for (const Contender &contender : contenders) {
    medians.put(contender.name, median(contender.samples));
    samples.put(contender.name, contender.samples);
  }
  return Json().put("median", medians).put("samples", samples);
}

#endif
