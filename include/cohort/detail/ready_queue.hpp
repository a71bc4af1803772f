// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// A function object in a ready_queue.
class ready_call {
public:
    virtual ~ready_call() = default;
    /// Frees its memory, then calls the function object.
    virtual void run(std::unique_ptr<ready_call> self) = 0;
};

template <class F>
class ready_call_of final : public ready_call {
public:
    explicit ready_call_of(F f) : f_(std::move(f)) {}
    void run(std::unique_ptr<ready_call> self) override {
        F f(std::move(f_));
        self.reset();
        std::move(f)();
    }

private:
    F f_;
};

/// What is queued on a manual_executor, and the descriptor that is readable meanwhile.
class COHORT_API ready_queue {
public:
    /// @throws std::system_error  no descriptor is left
    ready_queue();
    ready_queue(const ready_queue&) = delete;
    ready_queue& operator=(const ready_queue&) = delete;
    ~ready_queue();

    int fd() const noexcept;
    /// Queues a call. After close(), and in a forked copy, destroys it instead.
    void push(std::unique_ptr<ready_call> call);
    /// Runs what is queued now. @return how many it ran
    /// @throws std::system_error  this is a forked copy; and what a call throws
    std::size_t run();
    /// Destroys what is queued, and whatever is pushed from now on.
    void close() noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace cohort::detail::inline v0_1
