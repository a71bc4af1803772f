// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "share/channel/channel.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::share {

/// An operation that waits at an end of a queue.
struct waiter {
    using deadline = std::optional<detail::steady_time_point>;
    waiter(detail::receiver operation, deadline d) : to(std::move(operation)), until(d) {}
    waiter(detail::receiver operation, deadline d, std::shared_ptr<outgoing> put)
        : to(std::move(operation)), until(d), message(std::move(put)) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    /// On the engine's thread a put that was given up is freed in the background.
    ~waiter();

    const detail::receiver to;
    deadline until;
    std::shared_ptr<outgoing> message;  // of a put; null: still being written aside
    // How long a put that is written aside may wait once that is done; empty for other operations.
    std::optional<detail::steady_duration> patience;
    std::optional<loop::timer_id> timer;  // only on the engine's thread
};

/// The operations that wait at one end, in the order of their calls.
class line {
public:
    bool empty() const noexcept { return waiting_.empty(); }
    void join(std::shared_ptr<waiter> w) { waiting_.push_back(std::move(w)); }
    const std::shared_ptr<waiter>& first() const noexcept { return waiting_.front(); }
    std::shared_ptr<waiter> take_first() {
        auto taken = std::move(waiting_.front());
        waiting_.pop_front();
        return taken;
    }
    bool has(detail::operation_id id) const {
        return std::ranges::any_of(waiting_, [id](const auto& w) { return w->to.id == id; });
    }
    /// @return null: it does not wait here
    std::shared_ptr<waiter> take(detail::operation_id id) {
        const auto found =
            std::ranges::find_if(waiting_, [id](const auto& w) { return w->to.id == id; });
        if (found == waiting_.end())
            return nullptr;
        auto taken = std::move(*found);
        waiting_.erase(found);
        return taken;
    }

private:
    std::deque<std::shared_ptr<waiter>> waiting_;
};

}  // namespace cohort::share
