// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>

namespace cohort::lifecycle {

/// What the end of a group waits for.
enum class reason {
    workers,   // the machine has not reported the end: workers live, or the start is not over
    unreaped,  // children of failed starts, which the reaper still has
    words,     // what ended workers left is being read, or put into words
    cgroup,    // the group's cgroup: it is ended last, when all else is over
};

/// What a group has to do about its end now.
enum class ending_step {
    wait,        // for a release
    end_cgroup,  // begin to, and release(reason::cgroup) when that is done: comes at most once
    report,      // all is over: comes exactly once
};

/// The end of one group as a set of reasons to wait: no clock, no system calls. A reason can be held
/// several times. At first the workers are held, once.
class ending {
public:
    void hold(reason r) noexcept { ++count(r); }
    /// One that is not held stays so.
    void release(reason r) noexcept;
    bool is_held(reason r) const noexcept { return counts_[static_cast<std::size_t>(r)] > 0; }

    /// The group has a cgroup, which is to be ended.
    void has_cgroup() noexcept { cgroup_ = cgroup_state::to_be_ended; }
    /// Something could not be killed in time: what else can't be is not waited for anew.
    void give_up() noexcept { gave_up_ = true; }
    bool gave_up() const noexcept { return gave_up_; }

    ending_step next() noexcept;

private:
    enum class cgroup_state { none, to_be_ended, asked_for };
    int& count(reason r) noexcept { return counts_[static_cast<std::size_t>(r)]; }

    std::array<int, 4> counts_{1, 0, 0, 0};
    cgroup_state cgroup_ = cgroup_state::none;
    bool gave_up_ = false;
    bool over_ = false;
};

const char* to_string(ending_step s) noexcept;

}  // namespace cohort::lifecycle
