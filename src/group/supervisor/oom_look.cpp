// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/oom_look.hpp"

#include <chrono>
#include <utility>

namespace cohort::groups {

namespace {

using namespace std::chrono_literals;

/// The longest wait for the answer, because an outcome must not wait for ever.
constexpr auto longest_look = 10s;

struct look {
    std::shared_ptr<const start::worker_cgroup> cgroup;
    base::callback<void(std::optional<start::oom_kill>)> then;
    std::optional<start::oom_kill> found;
    loop::timer_id limit{};
};

}  // namespace

void find_oom_kill(loop::engine& loop, loop::background_thread& side,
                   std::shared_ptr<const start::worker_cgroup> cgroup,
                   base::callback<void(std::optional<start::oom_kill>)> then) {
    auto l = std::make_shared<look>(look{std::move(cgroup), std::move(then), {}, {}});
    l->limit = loop.timer().at(std::chrono::steady_clock::now() + longest_look,
                               [l] { std::exchange(l->then, {})(std::nullopt); });
    side.run([l] { l->found = l->cgroup->find_oom_kill(); },
             [l, &loop] {
                 if (!l->then)
                     return;  // too late
                 loop.timer().cancel(l->limit);
                 std::exchange(l->then, {})(l->found);
             });
}

}  // namespace cohort::groups
