// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cohort::groups {

/// The ends of a group's workers whose outcomes are complete: those that next() has not told yet,
/// and of each worker the last one and the attempts before it. Belongs to the engine's thread.
class published_ends {
public:
    using ended_worker = std::shared_ptr<const detail::ended_worker>;

    explicit published_ends(std::size_t workers) : last_(workers) {}

    void add(ended_worker end);
    /// Another attempt follows the last end of these workers.
    /// @return those whose last end is here
    std::set<int> note_restarts(const std::vector<int>& indices);
    /// Gives the last end of a worker the attempts before it.
    void add_past_to(detail::ended_worker& last) const;

    /// Adds to what is noted of a worker's last end, if it is here. What next() has told stays as
    /// it is.
    void add_note(int index, const std::string& note);

    /// By index; null: none yet, or another attempt follows.
    const std::vector<ended_worker>& last() const noexcept { return last_; }
    /// How many workers have their last end.
    int complete() const noexcept { return complete_; }

    /// The next one for next(); null: none.
    const ended_worker* first_untold() const noexcept {
        return untold_.empty() ? nullptr : &untold_.front();
    }
    void pop_untold() { untold_.pop_front(); }

private:
    void keep_past(int index, ended_worker attempt);
    void drop_results();

    std::vector<ended_worker> last_;
    int complete_ = 0;
    std::map<int, std::deque<ended_worker>> past_;  // by index
    std::deque<ended_worker> untold_;
};

}  // namespace cohort::groups
