// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "play.hpp"
#include "scratch.hpp"

#include <map>
#include <string>

namespace chaos {

/// Runs plays, one after the other, and counts how their workers end.
class play_runner {
public:
    /// @return what is wrong; empty: nothing
    std::string run(const play& plan);
    /// How often an attempt ended how.
    std::string statistics() const;

private:
    // Not removed with each play, because a group that was dropped may still write there.
    const cohort::test::scratch_directory logs_;
    int last_ = 0;
    std::map<std::string, int> counts_;
};

}  // namespace chaos
