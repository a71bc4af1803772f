// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "process_tree.hpp"
#include "round.hpp"
#include "signal_process.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace chaos {

/// What the test does to the host if the first signal need not have ended it.
enum class host_action { none, kill, terminate, abort, stop, exit, drop };

/// All that the test does to the tree of one round.
class round_actions {
public:
    /// Does all of it. Afterwards no process is signalled any more.
    round_actions(process_tree& tree, const round_plan& plan);

    /// Whether all of it explains this wait status of the host.
    bool expects(int status) const;
    bool found_target() const { return first_.pid != 0; }
    /// A description for people.
    std::string text() const;

private:
    void signal_more(process_tree& tree, random_numbers& random);
    bool action_is_one_of(std::initializer_list<host_action> wanted) const;

    target_kind first_target_;
    sent_signals first_;
    std::vector<sent_signals> more_;  // of target_kind::any_process
    host_action action_ = host_action::none;
    bool killed_at_last_ = false;
};

}  // namespace chaos
