// CUDA graphs of what a stream is asked for.
#ifndef FIGURES_GRAPH_HPP
#define FIGURES_GRAPH_HPP

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "device.hpp"

class Graph {
 public:
  // Captures what `body` asks the stream for. Fails where that cannot be captured; the stream can be
  // used as before then.
  Graph(cudaStream_t stream, const std::function<void()> &body) : Graph(stream) {
    double start = now();
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::string refusal;
    try {
      body();
    } catch (const Failure &failure) {
      refusal = failure.what();
    }
    capture_seconds = now() - start;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph_);
    // The error is reported here, and is not one of later calls.
    cudaGetLastError();
    if (refusal.empty() && ended != cudaSuccess) refusal = cudaGetErrorString(ended);
    if (!refusal.empty()) fail("not captured: " + refusal);
    start = now();
    check(cudaGraphInstantiate(&executable_, graph_, 0));
    instantiate_seconds = now() - start;
  }
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (graph_) cudaGraphDestroy(graph_);
  }

  void launch() const { check(cudaGraphLaunch(executable_, stream_)); }

  std::vector<cudaGraphNode_t> nodes() const {
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> all(count);
    if (count > 0) check(cudaGraphGetNodes(graph_, all.data(), &count));
    return all;
  }
  std::vector<cudaGraphNode_t> kernels() const {
    std::vector<cudaGraphNode_t> found;
    for (const cudaGraphNode_t node : nodes()) {
      cudaGraphNodeType type;
      check(cudaGraphNodeGetType(node, &type));
      if (type == cudaGraphNodeTypeKernel) found.push_back(node);
    }
    return found;
  }
  // Edges of programmatic dependent launch: the second node may begin before the first has ended.
  std::size_t programmatic_edges() const {
    std::size_t count = 0, found = 0;
    check(edges(nullptr, nullptr, nullptr, &count));
    std::vector<cudaGraphNode_t> from(count), to(count);
    std::vector<cudaGraphEdgeData> data(count);
    if (count > 0) check(edges(from.data(), to.data(), data.data(), &count));
    for (const cudaGraphEdgeData &edge : data)
      if (edge.type == cudaGraphDependencyTypeProgrammatic) ++found;
    return found;
  }

  double capture_seconds = 0, instantiate_seconds = 0;

 private:
  explicit Graph(cudaStream_t stream) : stream_(stream) {}

  cudaError_t edges(cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
                    std::size_t *count) const {
#if CUDART_VERSION >= 13000
    return cudaGraphGetEdges(graph_, from, to, data, count);
#else
    return cudaGraphGetEdges_v2(graph_, from, to, data, count);
#endif
  }

  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

#endif
