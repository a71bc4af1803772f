// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/driver.hpp"

#include "base/sys/leaked.hpp"

#include <cstdlib>

#include <dlfcn.h>

namespace cohort::share::device::driver {

library::library() {
    const char* const named = ::secure_getenv("COHORT_CUDA_LIBRARY");
    name_ = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
    loaded_ = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded_ == nullptr)
        trouble_ = ::dlerror();
}

void* library::find(const char* symbol) {
    void* const found = loaded_ != nullptr ? ::dlsym(loaded_, symbol) : nullptr;
    if (found == nullptr && trouble_.empty())
        trouble_ = name_ + " is too old: it has no " + symbol;
    return found;
}

const calls& loaded() {
    return base::leaked([] { return calls(); });
}

}  // namespace cohort::share::device::driver
