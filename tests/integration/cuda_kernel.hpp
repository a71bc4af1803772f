// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "standin.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

// Kernels and graphs of a real device, by calls of its driver.
namespace cohort::test {

/// Makes a call of the driver. @throws std::runtime_error  it failed, or the driver has none
template <class... Parameters>
void must(const char* symbol, std::type_identity_t<Parameters>... values) {
    auto* const function = driver_function<int(Parameters...)>(symbol);
    if (function == nullptr)
        throw std::runtime_error(std::string("the driver has no ") + symbol);
    if (const int error = function(values...); error != 0)
        throw std::runtime_error(std::string(symbol) + ": error " + std::to_string(error));
}

/// How much memory of device 0 is free; 0: the driver does not tell.
inline std::size_t free_memory() {
    if (driver_function<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2") == nullptr)
        return 0;
    const current_context current;
    std::size_t free = 0;
    std::size_t total = 0;
    must<std::size_t*, std::size_t*>("cuMemGetInfo_v2", &free, &total);
    return free;
}

/// A stream that waits for no other one, nor others for it.
class other_stream {
public:
    other_stream() {
        const current_context current;
        must<void**, unsigned>("cuStreamCreate", &stream_, 1);
    }
    other_stream(const other_stream&) = delete;
    other_stream& operator=(const other_stream&) = delete;
    ~other_stream() {
        const current_context current;
        (void)driver_function<int(void*)>("cuStreamDestroy_v2")(stream_);
    }
    void* get() const noexcept { return stream_; }

private:
    void* stream_ = nullptr;
};

/// A kernel that runs until the host opens its gate, on a stream of its own that waits for no other
/// one. Then it writes a value into each element of an array. It ends by itself after a while, so
/// that a case that fails does not keep the device. To be made before anything runs that it is not
/// to wait for: the driver may wait for the device while it loads a kernel.
class gated_kernel {
public:
    /// Why there can be none here; empty: it can run.
    static std::string why_not() {
        if (uses_standin)
            return "the stand-in runs no kernels";
        try {
            const gated_kernel trial(nullptr, 0);
        } catch (const std::runtime_error& e) {
            return e.what();
        }
        return "";
    }

    gated_kernel(int* target, std::size_t elements)
        : target_(reinterpret_cast<std::uint64_t>(target)),
          elements_(static_cast<unsigned>(elements)) {
        const current_context current;
        must<void**, const void*>("cuModuleLoadData", &module_, text);
        must<void**, void*, const char*>("cuModuleGetFunction", &function_, module_,
                                         "wait_then_fill");
        constexpr unsigned mapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP
        void* words = nullptr;
        must<void**, std::size_t, unsigned>("cuMemHostAlloc", &words, 2 * sizeof(unsigned), mapped);
        words_ = static_cast<unsigned*>(words);
        must<std::uint64_t*, void*, unsigned>("cuMemHostGetDevicePointer_v2", &words_there_, words,
                                              0);
    }
    gated_kernel(const gated_kernel&) = delete;
    gated_kernel& operator=(const gated_kernel&) = delete;
    ~gated_kernel() {
        open();
        const current_context current;
        (void)driver_function<int(void*)>("cuStreamSynchronize")(stream_.get());
        (void)driver_function<int(void*)>("cuMemFreeHost")(words_);
        (void)driver_function<int(void*)>("cuModuleUnload")(module_);
    }

    /// Returns when the kernel runs.
    /// @param longest  after that it opens its gate itself
    void start(int value, std::chrono::nanoseconds longest = std::chrono::seconds(20)) {
        word(gate).store(0);
        word(phase).store(0);
        auto value_there = static_cast<unsigned>(value);
        auto longest_there = static_cast<std::uint64_t>(longest.count());
        void* parameters[] = {&words_there_, &target_, &elements_, &value_there, &longest_there};
        {
            const current_context current;
            must<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                 void**, void**>("cuLaunchKernel", function_, 1, 1, 1, 1, 1, 1, 0, stream_.get(),
                                 parameters, nullptr);
        }
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (word(phase).load() == 0) {  // the driver tells no event
            if (std::chrono::steady_clock::now() >= until)
                throw std::runtime_error("the kernel does not begin");
            std::this_thread::yield();
        }
    }
    void open() { word(gate).store(1); }
    bool is_running() const { return word(phase).load() == running; }
    /// Whether all values are written.
    bool has_ended() const { return word(phase).load() == ended; }
    void* stream() const noexcept { return stream_.get(); }

private:
    enum words { gate, phase };
    enum phases : unsigned { running = 1, ended = 2 };
    std::atomic_ref<unsigned> word(words which) const {
        return std::atomic_ref<unsigned>(words_[which]);
    }

    // Any device since those of compute capability 7.5 can run it.
    static constexpr const char* text = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .entry wait_then_fill(
    .param .u64 words, .param .u64 target, .param .u32 count, .param .u32 value,
    .param .u64 longest)
{
    .reg .pred %p1;
    .reg .b32 %seen, %count, %value, %phase;
    .reg .b64 %words, %target, %longest, %begin, %now;
    ld.param.u64 %words, [words];
    ld.param.u64 %target, [target];
    ld.param.u32 %count, [count];
    ld.param.u32 %value, [value];
    ld.param.u64 %longest, [longest];
    mov.u64 %begin, %globaltimer;
    mov.u32 %phase, 1;
    st.volatile.u32 [%words+4], %phase;
    membar.sys;
wait:
    ld.volatile.u32 %seen, [%words];
    setp.ne.u32 %p1, %seen, 0;
    @%p1 bra fill;
    nanosleep.u32 1000;
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p1, %now, %longest;
    @%p1 bra wait;
fill:
    setp.eq.u32 %p1, %count, 0;
    @%p1 bra done;
    st.u32 [%target], %value;
    add.u64 %target, %target, 4;
    sub.u32 %count, %count, 1;
    bra fill;
done:
    membar.sys;
    mov.u32 %phase, 2;
    st.volatile.u32 [%words+4], %phase;
    ret;
}
)";

    other_stream stream_;
    std::uint64_t target_;
    unsigned elements_;
    void* module_ = nullptr;
    void* function_ = nullptr;
    unsigned* words_ = nullptr;  // the host's memory, which the device uses too
    std::uint64_t words_there_ = 0;
};

/// Runs a graph that was captured, and returns when it has ended.
inline void run_graph(void* graph) {
    const current_context current;
    void* executable = nullptr;
    must<void**, void*, unsigned long long>("cuGraphInstantiateWithFlags", &executable, graph, 0);
    const other_stream stream;
    must<void*, void*>("cuGraphLaunch", executable, stream.get());
    must<void*>("cuStreamSynchronize", stream.get());
    must<void*>("cuGraphExecDestroy", executable);
}

}  // namespace cohort::test
