// SPDX-License-Identifier: BSL-1.0
// What a group's handle asks of its streams.
#include "output/streams/group_streams.hpp"

#include <utility>

namespace cohort::output {

void group_streams::await_lines(detail::receiver to, detail::amount wanted,
                                std::optional<detail::time_point> until) {
    if (!hub_) {
        runtime_.loop().post([&runtime = runtime_, to = std::move(to)] {
            runtime.deliver(to, detail::completion());
        });
        return;
    }
    hub_->await(std::move(to), wanted, until);
}

void group_streams::cancel(detail::operation_id id) {
    if (!routes_.has_pipes)
        return;
    loop().post([self = shared_from_this(), id] {
        if (self->hub_ && self->hub_->cancel(id))
            return;
        for (auto& each : self->workers_)
            if ((each.feed && each.feed->cancel(id)) || cancel_early(each, id))
                return;
    });
}

void group_streams::forget_lines() {
    if (hub_)
        loop().post([hub = hub_] { hub->forget(); });
}

}  // namespace cohort::output
