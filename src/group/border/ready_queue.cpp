// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/ready_queue.hpp>

#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// The event is changed under the lock together with the queue, so that it is set exactly while
/// something is queued. It is raised again where another thread or an inner loop may have to hear
/// of what is queued, because who watches it edge-triggered has heard of the first time only.
struct ready_queue::state {
    /// @param call  stays the caller's if there is no memory: not to be destroyed under the lock
    void put(std::unique_ptr<ready_call>&& call) {
        calls.push_back(std::move(call));
        if (calls.size() == 1 || runs > 0)
            base::raise_event(event.get());
    }
    std::unique_ptr<ready_call> take() {
        auto first = std::move(calls.front());
        calls.pop_front();
        ++taken;
        if (calls.empty())
            base::drain_event(event.get());
        return first;
    }
    /// @throws std::system_error  this is a forked copy of the process
    void refuse_copy() const {
        if (!maker.same_process())
            throw std::system_error(
                std::make_error_code(std::errc::no_child_process),
                "cohort: this manual_executor belongs to the parent of this forked process");
    }
    void raise_if_any() noexcept {
        if (!calls.empty())
            base::raise_event(event.get());
    }

    base::fork_mark maker;
    base::unique_fd event;
    std::mutex mutex;
    std::deque<std::unique_ptr<ready_call>> calls;
    std::uint64_t taken = 0;  // as many as were before the first of `calls`
    int runs = 0;             // how many calls of run() go on
    bool closed = false;
};

ready_queue::ready_queue() : state_(std::make_unique<state>()) {
    std::error_code error;
    state_->event = base::make_eventfd(error);
    if (error)
        throw std::system_error(error, "cohort: eventfd of a manual_executor");
}

ready_queue::~ready_queue() {
    if (state_->maker.same_process())
        return;
    // Leaks the rest, because another thread of the parent may have been changing it at the fork.
    state_->event.reset();
    (void)state_.release();
}

int ready_queue::fd() const noexcept { return state_->event.get(); }

void ready_queue::push(std::unique_ptr<ready_call> call) {
    if (!state_->maker.same_process())
        return;
    const std::lock_guard lock(state_->mutex);
    if (!state_->closed)
        state_->put(std::move(call));
}

std::size_t ready_queue::run() {
    state_->refuse_copy();
    /// One call of run(), with the lock where no handler runs.
    struct running {
        explicit running(state& of) : queue(of), lock(of.mutex) { ++queue.runs; }
        ~running() {
            if (!queue.maker.same_process())
                return;  // a handler has forked: the copy has no use of the lock
            if (!lock.owns_lock())
                lock.lock();
            --queue.runs;
            queue.raise_if_any();
        }
        state& queue;
        std::unique_lock<std::mutex> lock;
    } now(*state_);
    const std::uint64_t end = state_->taken + state_->calls.size();
    std::size_t ran = 0;
    // An inner call, or one on another thread, may take some of them.
    while (state_->taken < end) {
        auto next = state_->take();
        if (ran == 0)
            state_->raise_if_any();  // for others, in case this one takes long
        now.lock.unlock();
        auto& call = *next;
        call.run(std::move(next));
        ++ran;
        state_->refuse_copy();
        now.lock.lock();
    }
    return ran;
}

void ready_queue::close() noexcept {
    if (!state_->maker.same_process())
        return;
    decltype(state_->calls) queued;  // destroyed without the lock: destructors may push
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    queued.swap(state_->calls);
}

}  // namespace cohort::detail::inline v0_1
