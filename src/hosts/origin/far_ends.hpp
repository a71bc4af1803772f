// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"
#include "group/lifecycle/verdict.hpp"

#include <cohort/outcome.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

// How workers at a host have ended, as the whole group judges them. Nothing is asked of the system.
namespace cohort::multihost {

/// How a worker has ended.
struct far_end {
    outcome left;
    groups::verdict judged;
};

/// What the group has done to its workers, and what their host has.
struct far_stop {
    std::optional<groups::time_point> sent;  // when the group told its hosts to stop, if it has
    // That was because of this limit; empty: for another reason.
    std::optional<std::chrono::steady_clock::duration> limit;
    std::string told_to_end;     // why the host ends by itself; empty: it does not
    groups::time_point told_at{};  // when it has said so
    bool holds = false;  // a worker has failed, therefore no host starts another one
};

/// Of a worker whose end the agent has told. A host that ends by itself stops its workers, and an
/// engine may send them SIGTERM, too: that is the host's failure, not theirs. What a worker does
/// after the group's time limit is a failure with cause::timed_out, as in a local group.
/// @param end    with an outcome; its index is that at the host
/// @param first  index of the first worker there
far_end judge_told(const detail::ended_worker& end, int first, const far_stop& by);

/// A worker whose status will never be known, because its host is lost.
struct lost_worker {
    int index = 0;  // the group's
    int attempt = 0;
    pid_t pid = 0;
    std::string host;
    std::string why;
    std::shared_ptr<const std::string> work;
    groups::time_point started;
    groups::time_point last_heard;             // of its agent: the failure counts from there
    std::optional<groups::time_point> failed;  // when it had failed, if its agent has said so
    // The clocks now.
    groups::time_point now;
    std::chrono::system_clock::time_point time_of_day;
};
far_end judge_lost(const lost_worker& worker, const far_stop& by);

}  // namespace cohort::multihost
