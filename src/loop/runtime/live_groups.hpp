// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "loop/runtime/stop_spans.hpp"

#include <chrono>
#include <set>
#include <vector>

namespace cohort::loop {

/// A group as class runtime knows it: it lives, and must be stopped before the program ends.
class live_group {
public:
    virtual ~live_group() = default;
    /// Begins the stop ladder, with no step longer than `limit`.
    virtual void stop_within(std::chrono::steady_clock::duration limit) = 0;
};

/// All groups of a process that live.
class live_groups {
public:
    explicit live_groups(engine& loop) noexcept : loop_(loop) {}

    // On the engine's thread only:

    void add(live_group& group) { groups_.insert(&group); }
    void remove(live_group& group);
    /// Whether no other group lives.
    bool has_only(live_group& group) const {
        return groups_.size() == 1 && groups_.contains(&group);
    }

    // On any thread:

    stop_spans& spans() noexcept { return spans_; }

    // On any thread but the engine's:

    /// Stops every group, with no step of a stop ladder longer than `limit`, and blocks until all
    /// have ended. Blocks no longer than the longest ladder takes, even if something holds up the
    /// engine's thread. Nowhere else does the library block its caller for a group.
    void stop_all_and_wait(std::chrono::steady_clock::duration limit);

private:
    void report_when_empty();

    engine& loop_;
    stop_spans spans_;
    std::set<live_group*> groups_;
    std::vector<task> when_empty_;
};

}  // namespace cohort::loop
