// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/cgroup_end.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace cohort::groups {

namespace {

using namespace std::chrono_literals;

// The pause between attempts: killed processes are gone soon, but one that can't be killed may stay
// for long.
constexpr std::chrono::milliseconds first_back_off = 1ms;
constexpr std::chrono::milliseconds longest_back_off = 1s;
/// How long `then` waits after `until` for an attempt that has begun.
constexpr auto longest_attempt = 1s;

struct cgroup_end {
    loop::engine& loop;
    loop::background_thread& side;
    base::callback<bool()> end;  // whether it is gone
    loop::time_point until;
    base::callback<void()> then;
    std::optional<loop::timer_id> limit;
    std::chrono::milliseconds back_off = first_back_off;
    bool gone = false;  // the only member that the background thread writes

    void complete() {
        if (limit)
            loop.timer().cancel(*std::exchange(limit, std::nullopt));
        if (then)
            std::exchange(then, {})();
    }
};

void attempt(const std::shared_ptr<cgroup_end>& e) {
    e->side.run([e] { e->gone = e->end(); },
                [e] {
                    if (e->gone)
                        e->end = {};  // its descriptor is closed before `then` is told
                    const auto now = std::chrono::steady_clock::now();
                    if (e->gone || now >= e->until)
                        e->complete();
                    if (e->gone)
                        return;
                    auto next = now + e->back_off;
                    if (e->then)
                        next = std::min(next, e->until);
                    e->back_off = std::min(2 * e->back_off, longest_back_off);
                    e->loop.timer().at(next, [e] { attempt(e); });
                });
}

void begin(loop::engine& loop, loop::background_thread& side, base::callback<bool()> end,
           loop::time_point until, base::callback<void()> then) {
    auto e = std::make_shared<cgroup_end>(
        cgroup_end{loop, side, std::move(end), until, std::move(then), {}});
    if (e->then)
        e->limit = loop.timer().at(detail::saturating_add(until, longest_attempt), [e] {
            e->limit.reset();
            e->complete();
        });
    attempt(e);
}

}  // namespace

void end_cgroup(loop::engine& loop, loop::background_thread& side,
                std::shared_ptr<start::group_cgroup> ended, loop::time_point until,
                base::callback<void()> then) {
    begin(
        loop, side, [ended = std::move(ended)] { return ended->end(); }, until, std::move(then));
}

void end_cgroup(loop::engine& loop, loop::background_thread& side,
                std::shared_ptr<const start::worker_cgroup> ended, loop::time_point until,
                base::callback<void()> then) {
    begin(
        loop, side, [ended = std::move(ended)] { return ended->end(); }, until, std::move(then));
}

void end_cgroup(loop::background_thread& side, std::shared_ptr<const start::worker_cgroup> ended) {
    if (ended)
        side.run([ended = std::move(ended)] { ended->remove_if_empty(); }, [] {});
}

}  // namespace cohort::groups
