// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/inbox.hpp"

#include <chrono>

namespace cohort::loop {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto longest_run = std::chrono::milliseconds(5);
constexpr std::size_t between_looks = 16;  // tasks, because a look takes as long as a short one

}  // namespace

/// @return whether there are any
bool inbox::take_all() {
    running_.clear();
    next_ = 0;
    const std::lock_guard lock(mutex_);
    running_.swap(tasks_);
    is_woken_ = false;
    return !running_.empty();
}

void inbox::run() {
    const auto since = clock::now();
    // Tasks may post tasks without end: a flooded pipe does where the reactor refuses to watch it.
    constexpr int most_rounds = 16;
    for (int round = 0; round < most_rounds; ++round) {
        if (next_ == running_.size() && !take_all())
            return;
        while (next_ < running_.size()) {
            const auto t = std::move(running_[next_++]);
            t();
            // At the end of a round, too: work in portions is one task a round.
            const bool looks = next_ % between_looks == 0 || next_ == running_.size();
            if (looks && clock::now() - since > longest_run)
                return;
        }
    }
}

}  // namespace cohort::loop
