// SPDX-License-Identifier: BSL-1.0
#include "group/state/published_ends.hpp"

#include "base/sys/patiently.hpp"
#include "loop/runtime/freed_aside.hpp"

#include <algorithm>
#include <utility>

namespace cohort::groups {

namespace {

/// How many attempts of a worker are kept before the last one.
constexpr std::size_t most_past = 99;
/// How many ends that another attempt has followed wait for next(), which nobody may call.
constexpr std::size_t most_untold_past = 1000;

}  // namespace

void published_ends::add(ended_worker end) {
    const int index = end->left->index;
    untold_.push_back(end);
    if (!end->restarts) {
        last_[static_cast<std::size_t>(index)] = std::move(end);
        ++complete_;
        return;
    }
    keep_past(index, std::move(end));
    if (untold_.size() > last_.size() + most_untold_past)
        untold_.erase(std::ranges::find_if(untold_, [](const auto& e) { return e->restarts; }));
}

bool published_ends::note_restart(int index) {
    auto last = std::exchange(last_[static_cast<std::size_t>(index)], nullptr);
    if (!last)
        return false;
    --complete_;
    auto again = loop::make_freed_aside<detail::ended_worker>(*last);
    again->restarts = true;
    again->past.clear();
    std::ranges::replace(untold_, last, again);
    keep_past(index, std::move(again));
    return true;
}

void published_ends::keep_past(int index, ended_worker attempt) {
    auto& past = past_[index];
    past.push_back(std::move(attempt));
    if (past.size() > most_past)
        past.erase(past.begin() + 1);  // not the first, by which a report knows the group's start
}

void published_ends::add_past_to(detail::ended_worker& last) const {
    const auto found = past_.find(last.left->index);
    if (found != past_.end() && !last.restarts && last.past.empty())
        base::patiently([&] { last.past.assign(found->second.begin(), found->second.end()); });
}

}  // namespace cohort::groups
