// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/far_usage.hpp"

#include "group/supervisor/usage_looks.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace cohort::multihost {

void far_usage::ask(detail::receiver to) {
    next_.push_back(std::move(to));
    if (asked_.empty())
        begin();
}

void far_usage::begin() {
    now_ = std::exchange(next_, {});
    found_.clear();
    error_ = 0;
    for (const auto& part : parts_)
        if (part->ask_usage())
            asked_.insert(part.get());
    if (asked_.empty())  // nobody lives
        tell();
}

void far_usage::tell() {
    std::ranges::sort(found_, {}, &worker_usage::index);
    detail::completion done;
    if (error_ != 0)
        done = groups::failed_usage({error_, std::system_category()});
    else
        done.usage =
            std::make_shared<const std::vector<worker_usage>>(found_.begin(), found_.end());
    for (const auto& to : std::exchange(now_, {}))
        runtime_.deliver(to, done);
    if (!next_.empty())
        begin();
}

void far_usage::answered(const far_part& part, const used_resources& said) {
    if (asked_.erase(&part) == 0)
        return;
    error_ = error_ != 0 ? error_ : said.error;
    for (auto one : said.workers) {
        one.index += part.workers().first;
        found_.push_back(one);
    }
    if (asked_.empty())
        tell();
}

bool far_usage::stop_waiting(detail::operation_id id) {
    for (auto* const waiting : {&now_, &next_}) {
        const auto found = std::ranges::find(*waiting, id, &detail::receiver::id);
        if (found == waiting->end())
            continue;
        const auto to = std::move(*found);
        waiting->erase(found);
        runtime_.deliver(to, completion_of(detail::completion::kind::aborted));
        return true;
    }
    return false;
}

}  // namespace cohort::multihost
