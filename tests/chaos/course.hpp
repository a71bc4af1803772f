// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "family.hpp"
#include "round.hpp"
#include "strike.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace chaos {

/// What the judge does when the blow need not have ended the host.
enum class second_act { none, kill, terminate, abort, stop, exit, drop };

/// What is done to the tree of one round.
class course {
public:
    /// Does it; returns when nobody will be signalled any more.
    course(family& tree, const round_plan& plan);

    /// Whether the host may have ended so, after that.
    bool expects(int status) const;
    bool found_victim() const { return first_.pid != 0; }
    /// For a person.
    std::string text() const;

private:
    void strike_more(family& tree, dice& thrown);
    bool was(std::initializer_list<second_act> acts) const;

    victim who_;
    blow first_;
    std::vector<blow> more_;  // by anybody
    second_act act_ = second_act::none;
    bool killed_at_last_ = false;
};

}  // namespace chaos
