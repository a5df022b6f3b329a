// Kernels that are launched by CUDA's driver itself.
#ifndef FIGURES_BARE_KERNEL_HPP
#define FIGURES_BARE_KERNEL_HPP

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

#include "device.hpp"

inline void check(CUresult result) {
  if (result != CUDA_SUCCESS) fail("CUDA's driver: error " + std::to_string(int(result)));
}

// Functions of the driver, as the runtime finds them: nothing has to be linked with it.
struct Driver {
  decltype(&cuGraphKernelNodeGetParams) node_params;
  decltype(&cuFuncGetName) function_name;
  decltype(&cuKernelGetName) kernel_name;
  decltype(&cuModuleLoadData) load;
  decltype(&cuModuleUnload) unload;
  decltype(&cuModuleGetFunction) function;
  decltype(&cuFuncSetAttribute) set_attribute;
  decltype(&cuFuncGetParamInfo) parameter;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuLaunchKernelEx) launch_ex;

  Driver() {
    find("cuGraphKernelNodeGetParams", node_params);
    find("cuFuncGetName", function_name);
    find("cuKernelGetName", kernel_name);
    find("cuModuleLoadData", load);
    find("cuModuleUnload", unload);
    find("cuModuleGetFunction", function);
    find("cuFuncSetAttribute", set_attribute);
    find("cuFuncGetParamInfo", parameter);
    find("cuLaunchKernel", launch);
    find("cuLaunchKernelEx", launch_ex);
  }

 private:
  template <typename Function>
  static void find(const char *name, Function &function) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    // The version whose types are those of this header.
    check(cudaGetDriverEntryPointByVersion(name, &found, CUDA_VERSION, cudaEnableDefault, &result));
#else
    check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result));
#endif
    if (result != cudaDriverEntryPointSuccess || !found)
      fail(std::string("CUDA's driver has no ") + name);
    function = reinterpret_cast<Function>(found);
  }
};

// The kernel of a graph's node, loaded from its cubin once more, with the same arguments: what is
// launched without the library.
class BareKernel {
 public:
  BareKernel(cudaGraphNode_t node, const std::string &cubin) {
    check(driver_.node_params(node, &node_));
    const char *name = nullptr;
    if (node_.func) check(driver_.function_name(&name, node_.func));
    else check(driver_.kernel_name(&name, node_.kern));
    check(driver_.load(&module_, cubin.data()));
    check(driver_.function(&function_, module_, name));
    if (node_.sharedMemBytes > 0)
      check(driver_.set_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  int(node_.sharedMemBytes)));
    if (!node_.kernelParams) fail("the node does not tell its arguments");
    std::size_t offset = 0, size = 0;
    for (std::size_t i = 0; driver_.parameter(function_, i, &offset, &size) == CUDA_SUCCESS; ++i) {
      const char *bytes = static_cast<const char *>(node_.kernelParams[i]);
      arguments_.emplace_back(bytes, bytes + size);
    }
    for (std::vector<char> &argument : arguments_) addresses_.push_back(argument.data());
  }
  BareKernel(const BareKernel &) = delete;
  BareKernel &operator=(const BareKernel &) = delete;
  ~BareKernel() {
    if (module_) driver_.unload(module_);
  }

  void launch(cudaStream_t stream) const {
    check(driver_.launch(function_, node_.gridDimX, node_.gridDimY, node_.gridDimZ, node_.blockDimX,
                         node_.blockDimY, node_.blockDimZ, node_.sharedMemBytes, stream,
                         addresses_.data(), nullptr));
  }
  // With programmatic stream serialization, which the library launches kernels with that wait
  // themselves.
  void launch_programmatic(cudaStream_t stream) const {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = node_.gridDimX;
    config.gridDimY = node_.gridDimY;
    config.gridDimZ = node_.gridDimZ;
    config.blockDimX = node_.blockDimX;
    config.blockDimY = node_.blockDimY;
    config.blockDimZ = node_.blockDimZ;
    config.sharedMemBytes = node_.sharedMemBytes;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    check(driver_.launch_ex(&config, function_, addresses_.data(), nullptr));
  }

 private:
  Driver driver_;
  CUDA_KERNEL_NODE_PARAMS node_{};
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  std::vector<std::vector<char>> arguments_;
  // The driver only reads them, but takes no const.
  mutable std::vector<void *> addresses_;
};

#endif
