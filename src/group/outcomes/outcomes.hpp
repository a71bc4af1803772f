// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>
#include <map>
#include <set>

namespace cohort::groups {

/// What has to be there before the outcome of a worker that has ended is published.
enum class part : unsigned {
    record = 1,   // what the worker has left was read
    symbols = 2,  // its frames have names, and its error and its crash their texts
    output = 4,   // all that it has printed is where it belongs
    log = 8,      // its error is in a file; only for those that wants_log() names
};

/// What is to be done about the outcomes of a group now.
enum class outcome_step {
    wait,          // parts are missing, or the report is being written
    write_report,  // write the group's report, then note_report(); comes at most once
    publish,       // take_first() and publish it
};

/// The outcomes of a group as a machine: no clock, no files. It says when each is published: when
/// all its parts are there, in the order in which the workers ended, and the last of the group not
/// before the report is written.
class outcomes {
public:
    enum class report { wanted, not_wanted };

    outcomes(int workers, report of_group);

    /// Notes that an attempt of a worker has ended.
    /// @param end  a number for this end, which no other end of the group has
    void add(int end);
    /// Notes that another attempt follows this end, so that the worker's last outcome is still to
    /// come. Also if the outcome was taken.
    void note_restart(int end);
    /// Notes that the outcome has a part `log`, too.
    void wants_log(int end);
    /// Notes that a part is there. No effect for an end that was not added, or whose outcome was
    /// taken.
    /// @return whether the log is all that is missing now: it can be written
    bool note_part(int end, part p);
    bool is_missing(int end, part p) const;
    void note_report() noexcept;
    /// The report is not wanted any more. No effect when it is being written.
    void forget_report() noexcept;

    /// How many ends there are whose outcomes are not yet taken.
    int waiting() const noexcept { return static_cast<int>(order_.size()); }
    outcome_step next() noexcept;
    /// The end whose outcome is the next to be published.
    int first() const { return order_.front(); }
    int take_first();

private:
    std::map<int, unsigned> missing_;           // parts, by end
    std::set<int> not_last_;                    // ends that another attempt follows
    std::deque<int> order_;                     // in which they came
    int untaken_;                               // last outcomes, also of workers that live
    enum class report_state { none, due, begun } report_;
};

const char* to_string(outcome_step s) noexcept;

}  // namespace cohort::groups
