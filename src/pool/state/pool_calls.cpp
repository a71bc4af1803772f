// SPDX-License-Identifier: BSL-1.0
// The ends of a pool's calls.
#include "base/files/dispose.hpp"
#include "group/border/worker_failure.hpp"
#include "pool/state/pool_state.hpp"

#include <memory>
#include <utility>

namespace cohort::detail::inline v0_1 {

void pool_state::complete(const pools::order& order) {
    const auto found = calls_.find(order.call);
    if (found == calls_.end())
        return;
    auto of = std::move(found->second);
    calls_.erase(found);
    if (of.waits)
        shown_.end_wait();
    using end = pools::call_end;
    if (order.how == end::aborted || order.how == end::dropped)
        return deliver(std::move(of), nullptr);
    if (order.how == end::broken)
        return deliver(std::move(of), broken());
    std::shared_ptr<pools::ended_call> how;
    if (const auto told = endings_.find(order.worker); told != endings_.end())
        how = told->second;
    else
        how = std::make_shared<pools::ended_call>();
    how->how = order.how;
    how->function = of.function;
    const auto limit = order.how == end::not_begun ? of.limits.wait : of.limits.run;
    how->limit = limit.value_or(pools::duration());
    if (order.how == end::answered && how->has_thrown)
        return name_frames(std::move(of), std::move(how));
    deliver(std::move(of), std::move(how));
}

/// What calls get while no worker becomes ready.
std::shared_ptr<pools::ended_call> pool_state::broken() const {
    auto how = std::make_shared<pools::ended_call>(*last_death_);
    how->how = pools::call_end::broken;
    how->attempts = dispatcher_.deaths();
    return how;
}

/// The names are looked up on another thread, because that may read large files.
void pool_state::name_frames(call of, std::shared_ptr<pools::ended_call> how) {
    requests_.hold();
    runtime_.symbolizing().run(
        [how, &runtime = runtime_] { how->raised = with_names(runtime, pools::sent_error(*how)); },
        [self = shared_from_this(), of, how] {
            self->deliver(of, how);
            self->requests_.let_go();
        });
}

/// @param how  null: it was aborted
void pool_state::deliver(call of, std::shared_ptr<pools::ended_call> how) {
    if (of.packet && of.packet->is_slow_to_free())
        base::dispose(std::move(of.packet));
    completion done;
    done.what = how ? completion::kind::done : completion::kind::aborted;
    done.call = std::move(how);
    runtime_.deliver(of.to, std::move(done));
}

}  // namespace cohort::detail::inline v0_1
