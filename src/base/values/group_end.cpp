// SPDX-License-Identifier: BSL-1.0
#include "base/values/group_end.hpp"

#include "base/sys/host_name.hpp"
#include "base/values/last_words.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cohort::detail::inline v0_1 {

void add_note(std::string& notes, const std::string& more) {
    if (!more.empty())
        notes += notes.empty() ? more : "; " + more;
}

namespace {

/// When the worker was started first.
std::chrono::steady_clock::time_point start_of(const outcome& worker) {
    return worker.history.empty() ? worker.started : worker.history.front().started;
}

}  // namespace

cohort::report report_with(std::vector<outcome> outcomes) {
    cohort::report made;
    made.outcomes = std::move(outcomes);
    if (const auto& all = made.outcomes; !all.empty())
        made.elapsed = std::ranges::max(all, {}, &outcome::ended).ended -
                       start_of(std::ranges::min(all, {}, start_of));
    return made;
}

outcome ended_worker::without_history() const {
    auto worker = *left;
    worker.out = out;
    worker.err = err;
    worker.restarted = restarts;
    add_note(outcome_access::note(worker), note);
    return worker;
}

outcome ended_worker::whole() const {
    auto worker = without_history();
    if (past.empty() || restarts)
        return worker;
    std::vector<outcome> history;
    history.reserve(past.size() + 1);
    for (const auto& attempt : past) {
        history.push_back(attempt->without_history());
        history.back().restarted = true;  // the decision may be newer than the end
    }
    history.push_back(worker);
    worker.history = std::move(history);
    return worker;
}

bool is_small(const ended_worker& worker) noexcept {
    constexpr std::size_t small = 4096;
    if (!worker.left)
        return true;
    const auto* const result = outcome_access::result(*worker.left);
    const auto captured = [](const cohort::captured& text) {
        return text.head.size() + text.tail.size();
    };
    return worker.past.empty() && !worker.left->error && !worker.left->crash &&
           worker.left->at_stop.empty() &&
           (result == nullptr || result->cbor.size() + result->type.size() <= small) &&
           captured(worker.out) + captured(worker.err) <= small;
}

bool is_small(const group_end& end) noexcept {
    return std::ranges::all_of(end.workers_, [](const auto& each) { return is_small(*each); });
}

group_end::group_end(std::vector<std::shared_ptr<const ended_worker>> workers)
    : workers_(std::move(workers)) {
    std::ranges::sort(workers_, {}, [](const auto& worker) { return worker->left->index; });
}

int group_end::place_of(int index) const {
    const auto found = std::ranges::find(workers_, index,
                                         [](const auto& worker) { return worker->left->index; });
    return found == workers_.end() ? -1 : static_cast<int>(found - workers_.begin());
}

void group_end::keep_last_words() {
    if (first_failure < 0)
        return;
    const auto& failed = *workers_[static_cast<std::size_t>(first_failure)];
    stderr_tail = base::last_words(outcome_access::merges(*failed.left) ? failed.out : failed.err);
}

const report& group_end::report() const {
    const std::lock_guard lock(mutex_);
    if (report_)
        return *report_;
    std::vector<outcome> outcomes;
    outcomes.reserve(workers_.size());
    for (const auto& worker : workers_)
        outcomes.push_back(worker->whole());
    auto made = report_with(std::move(outcomes));
    made.name = name;
    made.host = base::host_name();
    made.hosts = hosts;
    made.time_limit = time_limit;
    if (first_failure >= 0)
        made.outcomes[static_cast<std::size_t>(first_failure)].first_failure = true;
    return report_.emplace(std::move(made));
}

}  // namespace cohort::detail::inline v0_1
