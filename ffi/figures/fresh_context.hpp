// A context that remembers nothing of other runs.
#ifndef FIGURES_FRESH_CONTEXT_HPP
#define FIGURES_FRESH_CONTEXT_HPP

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "device.hpp"

// It has a cache folder of its own, empty at first, which is removed with it.
class FreshContext {
 public:
  FreshContext() {
    std::string folder = (std::filesystem::temp_directory_path() / "figures-XXXXXX").string();
    if (!mkdtemp(folder.data())) fail(folder + ": cannot be made");
    folder_ = folder;
    sparserl_options *options = nullptr;
    check(sparserl_options_create(&options));
    check(sparserl_options_set(options, SPARSERL_OPTION_CACHE_FOLDER, folder.data(), folder.size()));
    check(sparserl_context_create(options, &context_));
    check(sparserl_options_destroy(options));
  }
  FreshContext(const FreshContext &) = delete;
  FreshContext &operator=(const FreshContext &) = delete;
  ~FreshContext() {
    // Not checked: another failure may be on its way.
    sparserl_context_destroy(context_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  sparserl_context *get() const { return context_; }

 private:
  std::filesystem::path folder_;
  sparserl_context *context_ = nullptr;
};

#endif
