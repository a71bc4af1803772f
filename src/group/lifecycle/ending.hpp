// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>

namespace cohort::groups {

/// What the end of a group waits for.
enum class reason {
    workers,       // the machine has not reported the end: workers live, or the start is not over
    later_starts,  // what the starts of workers after the first ones need is still open
    unreaped,      // children of failed starts that the reaper has not reaped yet
    outcomes,      // records of ended workers that are still being read, or whose stacks get names
    names,         // the search for names of shared memory that killed workers have left
    cgroup,        // the group's cgroup, which is ended last, when nothing else is held
};

/// What a group has to do about its end now.
enum class ending_step {
    wait,        // nothing: something is held, or the end is already reported
    end_cgroup,  // start ending the cgroup, then release(reason::cgroup); comes at most once
    report,      // report the end, because nothing is held any more; comes exactly once
};

/// The end of one group as a set of reasons to wait: no clock, no system calls. A reason can be
/// held several times and must then be released as often. At first `workers` is held once.
class ending {
public:
    void hold(reason r) noexcept { ++count(r); }
    /// Does nothing for a reason that is not held.
    void release(reason r) noexcept;
    bool is_held(reason r) const noexcept { return counts_[static_cast<std::size_t>(r)] > 0; }

    /// Tells that the group has a cgroup: next() then asks for its end.
    void has_cgroup() noexcept { cgroup_ = cgroup_state::to_be_ended; }
    /// Tells that something could not be killed in time. The end of the cgroup then gets no waiting
    /// time of its own.
    void give_up() noexcept { gave_up_ = true; }
    bool gave_up() const noexcept { return gave_up_; }

    ending_step next() noexcept;

private:
    enum class cgroup_state { none, to_be_ended, asked_for };
    int& count(reason r) noexcept { return counts_[static_cast<std::size_t>(r)]; }

    std::array<int, 6> counts_{1, 0, 0, 0, 0, 0};
    cgroup_state cgroup_ = cgroup_state::none;
    bool gave_up_ = false;
    bool over_ = false;
};

const char* to_string(ending_step s) noexcept;

}  // namespace cohort::groups
