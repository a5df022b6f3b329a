// Runs the kernel of this folder with its packed arrays: `make run` builds and starts this program,
// which loads kernel.cubin and packed.safetensors, computes one product, checks some of its rows
// against expected.txt, and times launches that follow each other.
//
// It needs a C++ compiler, and at run time NVIDIA's driver, but no CUDA toolkit: what it uses of
// CUDA's driver API is declared here and looked up in libcuda. `make check` reads the files and uses
// no GPU.
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

// What plan.json says.
enum Kind { INPUT, OUTPUT, ALPHA, BETA, MATRIX, WORKSPACE, SIZE };
struct Argument {
  const char* name;
  Kind kind;
  const char* dtype;  // f32, f64, f16, bf16, i32, u8, u16, u32 or u64
  size_t bytes;       // of all elements
  uint64_t value;     // of a size
};
static const Argument arguments[] = {
@ARGUMENTS@};
static const char* const kernel_name = "@KERNEL@";
static const unsigned grid = @GRID@, block = @BLOCK@, shared = @SHARED@;
static const bool begins_early = @EARLY@;  // programmatic_stream_serialization
static const double operations = @OPERATIONS@;  // floating-point, of one product
typedef @NUMBER@ Number;                        // alpha and beta

// Elements of x and y.
@DENSE@

// The factors and operands that expected.txt was made with.
static const Number alpha = 1.5, beta = -0.5;
static Dense operand(uint64_t index, uint32_t seed) {
  uint32_t bits = (uint32_t)(index + seed) * 2654435761u;
  return stored((double)(bits >> (32 - @BITS@)) / (1u << (@BITS@ - 1)) - 1.0);
}

static void fail(const std::string& message) {
  fprintf(stderr, "error: %s\n", message.c_str());
  exit(1);
}

static std::string read_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) fail(std::string(name) + ": cannot be read; run this in the folder that gen wrote");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The bytes of an array: behind the file's header, JSON whose length its first 8 bytes say.
static const char* find_array(const std::string& file, const Argument& argument) {
  uint64_t length = 0;
  if (file.size() >= 8) memcpy(&length, file.data(), 8);
  if (length == 0 || length > file.size() - 8) fail("packed.safetensors: is damaged");
  const std::string header = file.substr(8, length);
  const size_t at = header.find("\"" + std::string(argument.name) + "\":{");
  const char* const key = "\"data_offsets\":[";
  const size_t offsets = at == std::string::npos ? at : header.find(key, at);
  unsigned long long from = 0, to = 0;
  if (offsets == std::string::npos ||
      sscanf(header.c_str() + offsets + strlen(key), "%llu,%llu", &from, &to) != 2)
    fail(std::string("packed.safetensors: has no ") + argument.name);
  if (to < from || to - from != argument.bytes || to > file.size() - 8 - length)
    fail(std::string("packed.safetensors: ") + argument.name + " has another size");
  return file.data() + 8 + length + from;
}

// A line of expected.txt: an element of the product, its value, and how far a right one may be off.
struct Expected {
  size_t index;
  double value, bound;
};

static std::vector<Expected> read_expected() {
  std::istringstream lines(read_file("expected.txt"));
  std::vector<Expected> all;
  for (Expected one; lines >> one.index >> one.value >> one.bound;) all.push_back(one);
  if (!lines.eof())
    fail("expected.txt: element " + std::to_string(all.size() + 1) + " cannot be read");
  return all;
}

// CUDA's driver API, as far as it is used.
typedef int CUresult;
typedef unsigned long long CUdeviceptr;
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6, MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
struct LaunchAttribute {  // CUlaunchAttribute
  int id, padding;
  union {
    int allowed;
    char bytes[64];
  } value;
};
struct LaunchConfig {  // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static void* driver;
static void check(CUresult result, const char* call) {
  if (result != 0) fail(std::string(call) + " failed with CUDA error " + std::to_string(result));
}
template <typename... A>
static void call(const char* name, A... arguments) {
  typedef CUresult (*Function)(A...);
  void* const function = dlsym(driver, name);
  if (!function) fail(std::string("NVIDIA's driver has no ") + name);
  check(((Function)function)(arguments...), name);
}

static CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr pointer = 0;
  call("cuMemAlloc_v2", &pointer, bytes ? bytes : (size_t)1);
  return pointer;
}

int main(int count, char** words) {
  const std::string packed = read_file("packed.safetensors");
  size_t arrays = 0, bytes = 0, inputs = 0, outputs = 0;
  for (const Argument& argument : arguments) {
    if (argument.kind == MATRIX || argument.kind == WORKSPACE) {
      find_array(packed, argument);
      arrays += 1;
      bytes += argument.bytes;
    }
    if (argument.kind == INPUT) inputs = argument.bytes / sizeof(Dense);
    if (argument.kind == OUTPUT) outputs = argument.bytes / sizeof(Dense);
  }
  const std::vector<Expected> expected = read_expected();
  for (const Expected& one : expected)
    if (one.index >= outputs) fail("expected.txt: has an element that the product has not");
  if (count > 1 && !strcmp(words[1], "--files")) {
    printf("files      %zu arrays of %zu bytes, %zu expected elements\n", arrays, bytes,
           expected.size());
    return 0;
  }

  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) fail("there is no NVIDIA driver (libcuda.so.1) on this machine");
  const std::string cubin = read_file("kernel.cubin");
  int device = 0;
  void *context = nullptr, *module = nullptr, *function = nullptr;
  call("cuInit", 0u);
  call("cuDeviceGet", &device, 0);
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, (const void*)cubin.data());
  call("cuModuleGetFunction", &function, module, kernel_name);
  if (shared) call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared);

  std::vector<Dense> x(inputs), y(outputs);
  for (size_t i = 0; i < inputs; i++) x[i] = operand(i, 0);
  for (size_t i = 0; i < outputs; i++) y[i] = operand(i, 0x9e3779b9u);

  // Each argument's value, and where it lies: what cuLaunchKernel takes.
  const size_t number = sizeof arguments / sizeof *arguments;
  std::vector<uint64_t> values(number);
  std::vector<void*> passed(number);
  CUdeviceptr result = 0;
  for (size_t i = 0; i < number; i++) {
    const Argument& argument = arguments[i];
    passed[i] = &values[i];
    switch (argument.kind) {
      case ALPHA: memcpy(&values[i], &alpha, sizeof alpha); break;
      case BETA: memcpy(&values[i], &beta, sizeof beta); break;
      case SIZE: values[i] = argument.value; break;
      default: {
        const CUdeviceptr pointer = allocate(argument.bytes);
        const void* from = argument.kind == INPUT    ? (const void*)x.data()
                           : argument.kind == OUTPUT ? (const void*)y.data()
                                                     : find_array(packed, argument);
        if (argument.bytes) call("cuMemcpyHtoD_v2", pointer, from, argument.bytes);
        if (argument.kind == OUTPUT) result = pointer;
        values[i] = pointer;
      }
    }
  }
  // Where the architecture has it, the kernel begins before those before it in the stream have ended,
  // and waits for them itself.
  LaunchAttribute attribute = {PROGRAMMATIC_STREAM_SERIALIZATION, 0, {1}};
  const LaunchConfig config = {grid, 1, 1, block, 1, 1, shared, nullptr, &attribute, begins_early};
  const auto launch = [&] {
    call("cuLaunchKernelEx", &config, function, passed.data(), (void**)nullptr);
  };

  launch();
  call("cuCtxSynchronize");
  if (outputs) call("cuMemcpyDtoH_v2", (void*)y.data(), result, outputs * sizeof(Dense));
  double worst = 0;
  for (const Expected& one : expected) {
    const double error = std::fabs(number_of(y[one.index]) - one.value);
    // Also where the result is no number.
    if (!(error <= one.bound))
      fail("wrong: element " + std::to_string(one.index) + " is " +
           std::to_string(number_of(y[one.index])) + ", not " + std::to_string(one.value));
    if (one.bound > 0) worst = std::fmax(worst, error / one.bound);
  }
  if (expected.empty() && outputs)
    printf("unknown    expected.txt has no element to compare with\n");
  else
    printf("right      %zu elements, at most %.0f %% of the error bound\n", expected.size(),
           100 * worst);

  void *begin = nullptr, *end = nullptr;
  call("cuEventCreate", &begin, 0u);
  call("cuEventCreate", &end, 0u);
  const int launches = 100;
  for (int i = 0; i < 10; i++) launch();
  call("cuEventRecord", begin, (void*)nullptr);
  for (int i = 0; i < launches; i++) launch();
  call("cuEventRecord", end, (void*)nullptr);
  call("cuEventSynchronize", end);
  float milliseconds = 0;
  call("cuEventElapsedTime", &milliseconds, begin, end);
  const double seconds = milliseconds * 1e-3 / launches;
  printf("time       %.2f µs a launch, launches back to back, %.1f GFLOPS\n", seconds * 1e6,
         operations / seconds * 1e-9);
  return 0;
}
