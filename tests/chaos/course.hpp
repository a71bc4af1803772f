// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "family.hpp"
#include "round.hpp"
#include "strike.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace chaos {

/// What the judge does to the host if the first blow need not have ended it.
enum class second_act { none, kill, terminate, abort, stop, exit, drop };

/// All that the judge does to the tree of one round.
class course {
public:
    /// Does all of it. Afterwards no process is signalled any more.
    course(family& tree, const round_plan& plan);

    /// Whether all of it explains this wait status of the host.
    bool expects(int status) const;
    bool found_victim() const { return first_.pid != 0; }
    /// A description for people.
    std::string text() const;

private:
    void strike_more(family& tree, dice& thrown);
    bool was(std::initializer_list<second_act> acts) const;

    victim who_;
    blow first_;
    std::vector<blow> more_;  // against victim::anybody
    second_act act_ = second_act::none;
    bool killed_at_last_ = false;
};

}  // namespace chaos
