// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cstdint>
#include <string>

namespace chaos {

/// What a worker of a play does, after it has printed its index and its attempt.
enum class deed {
    succeeds,
    fails,
    recovers,      ///< fails in its first two attempts
    kills_itself,  ///< by SIGKILL
    sleeps,        ///< until a signal ends it
    obeys,         ///< sleeps, and succeeds at the stop signal
    ignores,       ///< the stop signal; succeeds soon
    is_missing,    ///< a command without a program
};

/// How the application ends a play, after some time.
enum class finish { stop, drop, cancel, join, join_for, wait, next };

/// One group with random options in this process, and what is done with it. Follows from its seed.
struct play {
    explicit play(std::uint64_t seed);

    deed deed_of(int index) const;
    /// For people.
    std::string text() const;

    group_plan group;
    deed even = deed::succeeds;  ///< workers 0, 2, 4, ...
    deed odd = deed::succeeds;
    bool has_logs = false;
    bool reports_stacks = false;  ///< when it is stopped
    finish by = finish::join;
    int after_us = 0;
};

}  // namespace chaos
