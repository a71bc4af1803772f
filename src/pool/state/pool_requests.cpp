// SPDX-License-Identifier: BSL-1.0
#include "pool/state/pool_requests.hpp"

#include <utility>
#include <vector>

namespace cohort::pools {

void pool_requests::add(const std::weak_ptr<const void>& pool, detail::receiver to,
                        std::optional<detail::time_point> until, bool is_stop) {
    const auto id = to.id;
    auto& added = waiting_[id];
    added.to = std::move(to);
    added.is_stop = is_stop;
    if (!until)
        return;
    added.limit = runtime_.loop().timer().at(*until, [this, pool, id] {
        if (const auto kept = pool.lock()) {
            waiting_.at(id).limit.reset();
            finish(id, detail::completion_of(detail::completion::kind::time_up));
        }
    });
}

void pool_requests::finish(detail::operation_id id, const detail::completion& how) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end())
        return;
    if (found->second.limit)
        runtime_.loop().timer().cancel(*found->second.limit);
    const auto to = std::move(found->second.to);
    waiting_.erase(found);
    runtime_.deliver(to, how);
}

void pool_requests::abort_wishes() {
    std::vector<detail::operation_id> wishes;
    for (const auto& [id, each] : waiting_)
        if (!each.is_stop)
            wishes.push_back(id);
    for (const auto id : wishes)
        finish(id, detail::completion_of(detail::completion::kind::aborted));
}

void pool_requests::grant(detail::operation_id id) {
    if (held_ > 0)
        granted_.push_back(id);
    else
        finish(id, detail::completion());
}

void pool_requests::let_go() {
    if (--held_ == 0)
        for (const auto id : std::exchange(granted_, {}))
            finish(id, detail::completion());
}

}  // namespace cohort::pools
