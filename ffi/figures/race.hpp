// How calls of several libraries are timed in turn.
#ifndef FIGURES_RACE_HPP
#define FIGURES_RACE_HPP

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "graph.hpp"
#include "json.hpp"

// Something to be timed, by the name that it has in the output.
struct Contender {
  std::string name;
  // Empty where there is nothing to call, for the reason in `refusal`.
  std::function<void()> call;
  std::vector<double> samples = {};
  std::string refusal = {};
};

// How often all contenders are called in turn: so many times at most, and after LEAST_ROUNDS only
// until so many seconds have passed.
struct Rounds {
  int most = 9;
  double seconds = 10;
};
constexpr int LEAST_ROUNDS = 3;

inline double median(std::vector<double> samples) {
  if (samples.empty()) return -1;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

// Has each contender called in turn, so that all see the same clocks; begins with another one in
// each round.
inline void in_turn(std::vector<Contender> &contenders, const Rounds &rounds,
                    const std::function<void(Contender &)> &sample) {
  const double start = now();
  for (int round = 0; round < rounds.most; ++round) {
    if (round >= LEAST_ROUNDS && now() - start > rounds.seconds) break;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender &contender = contenders[(i + std::size_t(round)) % contenders.size()];
      if (contender.call) sample(contender);
    }
  }
}

// GPU time, in microseconds a call, of `calls` calls in a stream: a sample a round.
inline void race(cudaStream_t stream, std::vector<Contender> &contenders, const Rounds &rounds,
                 int calls) {
  cudaEvent_t events[2];
  for (cudaEvent_t &event : events) check(cudaEventCreate(&event));
  for (Contender &contender : contenders)
    for (int i = 0; contender.call && i < std::min(calls, 20); ++i) contender.call();
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
// GPU takes where the host is out of the way. What cannot be captured says why.
inline std::vector<Contender> race_in_graphs(cudaStream_t stream,
                                             const std::vector<Contender> &contenders,
                                             const Rounds &rounds, int length, int launches) {
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<Contender> results;
  for (const Contender &contender : contenders) {
    Contender result{contender.name, nullptr, {}, contender.refusal};
    try {
      if (contender.call) {
        graphs.push_back(std::make_unique<Graph>(stream, [&] {
          for (int i = 0; i < length; ++i) contender.call();
        }));
        result.call = [&graph = *graphs.back()] { graph.launch(); };
      }
    } catch (const Failure &failure) {
      result.refusal = failure.what();
    }
    results.push_back(std::move(result));
  }
  race(stream, results, rounds, launches);
  for (Contender &result : results) {
    for (double &sample : result.samples) sample /= length;
    // Its graph is destroyed.
    result.call = nullptr;
  }
  return results;
}

// Seconds of whole loops in turn, from their first call until the GPU is done.
inline void race_loops(std::vector<Contender> &loops, const Rounds &rounds,
                       const std::function<void()> &restart) {
  in_turn(loops, {rounds.most + 1, rounds.seconds}, [&](Contender &loop) {
    restart();
    check(cudaDeviceSynchronize());
    const double start = now();
    loop.call();
    check(cudaDeviceSynchronize());
    loop.samples.push_back(now() - start);
  });
  // The first round warms up.
  for (Contender &loop : loops)
    if (!loop.samples.empty()) loop.samples.erase(loop.samples.begin());
}

// The medians, the samples, and why some have none.
inline Json results_of(const std::vector<Contender> &contenders) {
  Json medians, samples, refusals;
  bool has_refusals = false;
  for (const Contender &contender : contenders) {
    medians.put_known(contender.name, median(contender.samples));
    samples.put(contender.name, contender.samples);
    if (contender.refusal.empty()) continue;
    refusals.put(contender.name, contender.refusal);
    has_refusals = true;
  }
  Json made = Json().put("median", medians).put("samples", samples);
  if (has_refusals) made.put("refused", refusals);
  return made;
}

#endif
