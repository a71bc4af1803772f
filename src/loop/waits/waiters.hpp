// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/patience.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <poll.h>

// What calls need that block their thread in a poll.
namespace cohort::loop {

/// Makes a poll return when a stop token gets a stop request.
class stop_event {
public:
    /// @throws sharing_error  there is no room for a descriptor
    explicit stop_event(const std::stop_token& token);
    /// -1: no stop can be asked for.
    int descriptor() const noexcept { return event_ ? event_.get() : -1; }

private:
    struct set {
        explicit set(int e) noexcept : event(e) {}
        void operator()() const noexcept;
        int event;
    };
    base::unique_fd event_;
    std::optional<std::stop_callback<set>> callback_;
};

/// Waits for one of the events, no longer than until `deadline`.
/// @return false: none came
bool poll_until(std::span<pollfd> events,
                std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;

/// The operations that wait for the same event. Belongs to the thread of a loop.
class waiters {
public:
    waiters(loop::runtime& of, loop::engine& loop) noexcept : runtime_(of), loop_(loop) {}

    /// @param until  at that time the operation completes with time_up
    void add(detail::receiver to, std::optional<detail::time_point> until) {
        waiting_.push_back({std::move(to), std::nullopt, false});
        if (until)
            waiting_.back().timer =
                loop_.timer().at(*until, [this, id = waiting_.back().to.id] { time_up(id); });
    }

    /// Whether complete_first() finds an operation; it may still be one whose context is gone.
    bool has_one() const noexcept { return !waiting_.empty(); }

    /// Completes the operation that has waited longest, unless its context is gone: then the next.
    /// @return false: there was none
    bool complete_first(const detail::completion& result) {
        while (has_one())
            if (finish(waiting_.begin(), result))
                return true;
        return false;
    }

    /// Completes all operations, the cancelled ones with operation_aborted.
    void complete_all(const detail::completion& result) {
        while (!waiting_.empty())
            finish(waiting_.begin(), result);
    }

    /// Ends one operation with operation_aborted now. @return whether it waited here
    bool stop_waiting(detail::operation_id id) {
        auto found = find(id);
        if (found == waiting_.end())
            return false;
        found->aborted = true;
        finish(found, {});
        return true;
    }

    /// Cancels one operation, but lets it wait until complete_all(), which completes it with
    /// operation_aborted. Not where operations are completed one by one. @return whether it waited
    /// here
    bool abort_at_end(detail::operation_id id) {
        auto found = find(id);
        if (found == waiting_.end())
            return false;
        found->aborted = true;
        drop_timer(*found);
        return true;
    }

private:
    struct waiter {
        detail::receiver to;
        std::optional<loop::timer_id> timer;
        bool aborted;
    };
    using iterator = std::vector<waiter>::iterator;

    iterator find(detail::operation_id id) {
        return std::ranges::find_if(waiting_, [id](const auto& w) { return w.to.id == id; });
    }

    void drop_timer(waiter& w) {
        if (w.timer)
            loop_.timer().cancel(*std::exchange(w.timer, std::nullopt));
    }

    bool finish(iterator which, detail::completion result) {
        drop_timer(*which);
        if (which->aborted)
            result = detail::completion_of(detail::completion::kind::aborted);
        auto to = std::move(which->to);
        waiting_.erase(which);
        return runtime_.deliver(loop_, to, std::move(result));
    }

    void time_up(detail::operation_id id) {
        auto found = find(id);
        found->timer.reset();
        finish(found, detail::completion_of(detail::completion::kind::time_up));
    }

    loop::runtime& runtime_;
    loop::engine& loop_;
    std::vector<waiter> waiting_;
};

}  // namespace cohort::loop
