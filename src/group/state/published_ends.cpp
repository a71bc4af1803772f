// SPDX-License-Identifier: BSL-1.0
#include "group/state/published_ends.hpp"

#include "loop/runtime/runtime.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace cohort::groups {

namespace {

/// How many attempts of a worker are kept before the last one.
constexpr std::size_t most_past = 99;
/// How many ends that another attempt has followed wait for next(), which nobody may call.
constexpr std::size_t most_untold_past = 1000;
/// How many of these keep a result that holds descriptors.
constexpr std::size_t most_untold_results = 16;

using detail::outcome_access;

bool holds_descriptors(const detail::ended_worker& end) {
    return outcome_access::has_descriptors(*end.left);
}

/// The same end without its result, which holds descriptors.
published_ends::ended_worker without_result(const detail::ended_worker& end, const char* note) {
    auto left = std::make_shared<outcome>(*end.left);
    outcome_access::result(*left).reset();
    outcome_access::descriptors(*left).reset();
    auto made = loop::make_freed_aside<detail::ended_worker>(end);
    made->left = std::move(left);
    detail::add_note(made->note, note);
    return made;
}

}  // namespace

void published_ends::add(ended_worker end) {
    const int index = end->left->index;
    const bool has_descriptors = holds_descriptors(*end);
    untold_.push_back(end);
    if (!end->restarts) {
        last_[static_cast<std::size_t>(index)] = std::move(end);
        ++complete_;
        return;
    }
    keep_past(index, std::move(end));
    if (untold_.size() > last_.size() + most_untold_past)
        untold_.erase(std::ranges::find_if(untold_, [](const auto& e) { return e->restarts; }));
    if (has_descriptors)
        drop_results();
}

void published_ends::add_note(int index, const std::string& note) {
    auto& last = last_[static_cast<std::size_t>(index)];
    if (!last || note.empty())
        return;
    const auto noted = loop::make_freed_aside<detail::ended_worker>(*last);
    detail::add_note(noted->note, note);
    std::ranges::replace(untold_, last, ended_worker(noted));
    last = noted;
}

/// Of those that wait for next() for long, because a worker may leave a thousand descriptors soon.
void published_ends::drop_results() {
    const auto keeps_some = [](const auto& e) { return e->restarts && holds_descriptors(*e); };
    if (std::cmp_less_equal(std::ranges::count_if(untold_, keeps_some), most_untold_results))
        return;
    auto& oldest = *std::ranges::find_if(untold_, keeps_some);
    oldest =
        without_result(*oldest, "its result was dropped, because next() was not called in time");
}

std::set<int> published_ends::note_restarts(const std::vector<int>& indices) {
    std::set<int> here;
    std::map<ended_worker, ended_worker> changed;
    for (const int index : indices) {
        auto last = std::exchange(last_[static_cast<std::size_t>(index)], nullptr);
        if (!last)
            continue;
        here.insert(index);
        --complete_;
        auto again = loop::make_freed_aside<detail::ended_worker>(*last);
        again->restarts = true;
        again->past.clear();
        changed.emplace(std::move(last), again);
        keep_past(index, std::move(again));
    }
    for (auto& each : untold_)
        if (const auto found = changed.find(each); found != changed.end())
            each = found->second;
    return here;
}

void published_ends::keep_past(int index, ended_worker attempt) {
    if (holds_descriptors(*attempt))
        attempt = without_result(*attempt, "its result holds descriptors: only next() gives it");
    auto& past = past_[index];
    past.push_back(std::move(attempt));
    if (past.size() > most_past)
        past.erase(past.begin() + 1);  // not the first, by which a report knows the group's start
}

void published_ends::add_past_to(detail::ended_worker& last) const {
    const auto found = past_.find(last.left->index);
    if (found != past_.end() && !last.restarts && last.past.empty())
        last.past.assign(found->second.begin(), found->second.end());
}

}  // namespace cohort::groups
