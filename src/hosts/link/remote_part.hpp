// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"
#include "hosts/link/breach.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace cohort::multihost {

/// Where a part of a group is in its life, as the origin knows. It never returns to an earlier one.
enum class part_state {
    reached,   // the host has an agent; nothing was asked of it
    starting,  // the agent starts the workers
    gated,     // all of them have started; those of other hosts may not have
    running,   // all hosts have started theirs
    stopping,  // the agent was told to stop them
    reported,  // the agent has made its last report, or was never asked
    lost,      // nothing more is known of the workers that have not ended
};

/// What happens to a part.
struct part_event {
    enum class kind {
        // The origin's group wants it:
        start,
        open_gate,
        stop,  // with `spans`
        // The agent says it:
        started,
        not_started,
        ended,  // with `worker`
        reported,
        // It happens to the link:
        left,    // it has ended after the agent's bye
        cut,     // it has ended without
        silent,  // its lease has ended
        broken,  // with `how`
        // Only time has passed:
        deadline,
    };

    kind what;
    std::size_t worker = 0;  // its number in this part, from 0 on
    ladder_spans spans = {};
    std::optional<breach> how = {};
    bool is_held_up = false;  // for `deadline`: what the agent says may wait behind other messages
};

/// What the origin must now do, in this order when there are several.
struct part_action {
    enum class kind {
        // Messages to the agent:
        send_start,
        send_gate,
        send_stop,   // with remote_part::spans()
        send_leave,  // the agent may forget the group
        // News for the group:
        report_started,      // all workers of this host have
        report_not_started,  // none runs; the group must stop the others
        report_ended,        // `worker` has
        report_lost,         // all others have an unknown end, see remote_part::loss()
        // The last action, once: the part needs the link no more.
        close,
    };

    kind what;
    std::size_t worker = 0;

    friend bool operator==(const part_action&, const part_action&) = default;
};

/// Why a host is lost.
struct part_loss {
    enum class kind {
        left,            // the agent said bye before its last report
        cut,             // the link ended, whatever the launcher's exit code says
        silent,          // no beat for host_timeout
        broke_protocol,  // see `how`; the link must end, with it all other parts
        overdue,         // a stop, or the last report, takes longer than the agent may take
    };

    kind why;
    std::optional<breach> how = {};

    friend bool operator==(const part_loss&, const part_loss&) = default;
};

/// The life of a group's part on one host, as the origin sees it: a table, no clock, no system
/// calls. Only what the agent itself reports counts, so a link that ends without the last report
/// means that the host is lost. What the agent says must fit the state, because a link keeps the
/// order of its messages; what does not fit breaks the protocol. What comes after the end is
/// ignored.
class remote_part {
public:
    /// @param workers       how many the host is to run
    /// @param host_timeout  how much longer a stop may take than its ladder
    /// @param last_words    how long after the end of the last worker the agent may take for its
    ///                      last report, besides host_timeout
    remote_part(std::size_t workers, duration host_timeout, duration last_words = duration{0})
        : ended_(workers), left_(workers), host_timeout_(host_timeout), last_words_(last_words) {}

    /// Takes in one event. What the origin asks at the wrong time changes nothing.
    /// @return the actions, in the order in which they must be done
    std::vector<part_action> on(const part_event& e, time_point now);

    part_state current() const noexcept { return state_; }
    bool is_over() const noexcept { return state_ >= part_state::reported; }
    /// When event `deadline` must be handed in. It moves only to earlier times, but then the agent
    /// may get the same time once more: if the event comes a second too late, or says that it is
    /// held up, for which it gets ten minutes at most.
    std::optional<time_point> deadline() const noexcept { return deadline_; }
    /// What was asked of the stop: the shortest of each span.
    const ladder_spans& spans() const noexcept { return spans_; }
    /// Whether the agent has said that all workers have started.
    bool has_started() const noexcept { return has_started_; }
    /// Whether the end of this worker was reported.
    bool has_ended(std::size_t worker) const { return ended_.at(worker); }
    /// Set in state `lost`.
    const std::optional<part_loss>& loss() const noexcept { return loss_; }

private:
    struct table;

    part_state state_ = part_state::reached;
    std::vector<bool> ended_;
    std::size_t left_;  // workers that have not ended
    duration host_timeout_;
    duration last_words_;
    bool has_started_ = false;
    ladder_spans spans_;
    std::optional<time_point> deadline_;
    std::optional<time_point> first_due_;  // the first deadline that has passed
    std::optional<part_loss> loss_;
};

const char* to_string(part_state s) noexcept;
const char* to_string(part_event::kind e) noexcept;
const char* to_string(part_action::kind a) noexcept;

}  // namespace cohort::multihost
