// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/ready_queue.hpp>

#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// The event is changed under the lock together with the queue, so that it is set exactly while
/// something is queued.
struct ready_queue::state {
    void put(std::unique_ptr<ready_call> call) {
        calls.push_back(std::move(call));
        if (calls.size() == 1)
            raise();
    }
    std::unique_ptr<ready_call> take() {
        auto first = std::move(calls.front());
        calls.pop_front();
        ++taken;
        if (calls.empty())
            base::drain_event(event.get());
        return first;
    }
    void raise() noexcept {
        base::raise_event(event.get());
        ++raised;
    }

    base::fork_mark maker;
    base::unique_fd event;
    std::mutex mutex;
    std::deque<std::unique_ptr<ready_call>> calls;
    std::uint64_t taken = 0;  // as many as were before the first of `calls`
    std::uint64_t raised = 0;
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
    if (!state_->maker.same_process())
        throw std::system_error(
            std::make_error_code(std::errc::no_child_process),
            "cohort: this manual_executor belongs to the parent of this forked process");
    /// Who watches the event edge-triggered hears again of what this call leaves.
    struct turn {
        explicit turn(state& of) : queue(of), lock(of.mutex), raised(of.raised) {}
        ~turn() {
            if (!lock.owns_lock())
                lock.lock();
            if (!queue.calls.empty() && queue.raised == raised)
                queue.raise();
        }
        state& queue;
        std::unique_lock<std::mutex> lock;
        const std::uint64_t raised;
    } now(*state_);
    const std::uint64_t end = state_->taken + state_->calls.size();
    std::size_t ran = 0;
    // An inner call, or one on another thread, may take some of them.
    while (state_->taken < end) {
        auto next = state_->take();
        now.lock.unlock();
        auto& call = *next;
        call.run(std::move(next));
        ++ran;
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
