// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <memory>

namespace cohort::loop {
class engine;
}

namespace cohort::output {

/// A value that a process has once, made with its loop.
template <class T>
struct of_loop {
    const loop::engine& loop;
    T value;
};

/// The value of the process whose loop this is. Made if need be and leaked on purpose. A forked
/// copy of this process has another loop, because the threads are its parent's.
template <class T>
T& latest_of(std::atomic<of_loop<T>*>& latest, loop::engine& loop) {
    auto* seen = latest.load();
    while (!seen || &seen->loop != &loop) {
        std::unique_ptr<of_loop<T>> fresh(new of_loop<T>{loop, T(loop)});
        if (latest.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return seen->value;
}

}  // namespace cohort::output
