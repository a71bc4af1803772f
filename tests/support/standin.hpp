// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cuda.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>

// The driver that test programs use: the stand-in, unless COHORT_CUDA_LIBRARY names another one.
namespace cohort::test {

/// Whether it is the stand-in. Set before the first use, in workers too.
inline const bool uses_standin =
    ::setenv("COHORT_CUDA_LIBRARY", COHORT_STANDIN_CUDA, 0) == 0 &&
    ::getenv("COHORT_CUDA_LIBRARY") == std::string(COHORT_STANDIN_CUDA);

/// A function of the driver, or of the stand-in; null: it has none.
template <class Function>
Function* driver_function(const char* symbol) {
    static void* const library = ::dlopen(::getenv("COHORT_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function*>(::dlsym(library, symbol));
}

/// How often the stand-in's function was called. With another driver always 0.
inline int calls_of(const char* symbol) {
    auto* const count = driver_function<int(const char*)>("standin_count");
    return count != nullptr ? count(symbol) : 0;
}

/// How many handles, mappings and ranges of addresses the stand-in has given out.
inline int held_by_standin() {
    auto* const count = driver_function<int()>("standin_held");
    return count != nullptr ? count() : 0;
}

/// A call of the stand-in that fails, for the duration of a scope: "cuMemCreate:1" the first one.
class failing_call {
public:
    explicit failing_call(const std::string& which) {
        ::setenv("COHORT_STANDIN_FAIL", which.c_str(), 1);
    }
    failing_call(const failing_call&) = delete;
    failing_call& operator=(const failing_call&) = delete;
    ~failing_call() {
        ::unsetenv("COHORT_STANDIN_FAIL");
        int count = 0;
        (void)driver_function<int(int*)>("cuDeviceGetCount")(&count);  // which notices that
    }
};

/// Makes the primary context of device 0 current, as the CUDA runtime does.
class current_context {
public:
    current_context() {
        void* context = nullptr;
        (void)driver_function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
        (void)driver_function<int(void*)>("cuCtxPushCurrent_v2")(context);
    }
    current_context(const current_context&) = delete;
    current_context& operator=(const current_context&) = delete;
    ~current_context() {
        void* context = nullptr;
        (void)driver_function<int(void**)>("cuCtxPopCurrent_v2")(&context);
    }
};

/// A stream that captures a graph, as of torch.cuda.graph.
class capturing_stream {
public:
    enum class kind { blocking, non_blocking };
    enum class mode { global, thread_local_only, relaxed };  // global: the strictest
    explicit capturing_stream(kind which, mode how = mode::global) {
        const current_context current;
        (void)driver_function<int(void**, unsigned)>("cuStreamCreate")(
            &stream_, which == kind::non_blocking ? 1 : 0);
        (void)driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(stream_,
                                                                          static_cast<int>(how));
    }
    capturing_stream(const capturing_stream&) = delete;
    capturing_stream& operator=(const capturing_stream&) = delete;
    ~capturing_stream() {
        const current_context current;
        (void)end();
        if (graph_ != nullptr)
            (void)driver_function<int(void*)>("cuGraphDestroy")(graph_);
        (void)driver_function<int(void*)>("cuStreamDestroy_v2")(stream_);
    }

    void* get() const noexcept { return stream_; }
    /// @return whether the capture was valid
    bool end() {
        const current_context current;
        void* graph = nullptr;
        const int error =
            driver_function<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph);
        if (graph != nullptr)
            graph_ = graph;
        return error == 0;
    }
    /// What was captured; null on the stand-in.
    void* graph() const noexcept { return graph_; }

private:
    void* stream_ = nullptr;
    void* graph_ = nullptr;
};

/// Memory that the program itself has allocated, as by cudaMalloc.
class driver_memory {
public:
    explicit driver_memory(std::size_t bytes) {
        const current_context current;
        (void)driver_function<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address_, bytes);
    }
    driver_memory(const driver_memory&) = delete;
    driver_memory& operator=(const driver_memory&) = delete;
    ~driver_memory() {
        const current_context current;
        free();
    }

    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(address_);
    }
    /// Needs a current context, as cuMemFree does.
    void free() {
        if (address_ != 0)
            (void)driver_function<int(std::uint64_t)>("cuMemFree_v2")(address_);
        address_ = 0;
    }

private:
    std::uint64_t address_ = 0;
};

}  // namespace cohort::test
