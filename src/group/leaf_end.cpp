// SPDX-License-Identifier: BSL-1.0
#include "group/leaf_end.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cohort::group_room {

namespace {

using namespace std::chrono_literals;

// What was killed is gone soon; what can't be killed may stay for long.
constexpr std::chrono::milliseconds first_back_off = 1ms;
constexpr std::chrono::milliseconds longest_back_off = 1s;

struct attempt {
    engine::engine& loop;
    std::shared_ptr<start::leaf> ended;
    engine::time_point until;
    std::function<void()> then;
    std::chrono::milliseconds back_off = first_back_off;
};

void again_later(const std::shared_ptr<attempt>& a) {
    auto next = std::chrono::steady_clock::now() + a->back_off;
    if (a->then)
        next = std::min(next, a->until);
    a->back_off = std::min(2 * a->back_off, longest_back_off);
    a->loop.timer().at(next, [a] {
        const bool gone = a->ended->end();
        if (a->then && (gone || std::chrono::steady_clock::now() >= a->until))
            std::exchange(a->then, {})();
        if (!gone)
            again_later(a);
    });
}

}  // namespace

bool end_leaf(engine::engine& loop, std::shared_ptr<start::leaf> ended, engine::time_point until,
              std::function<void()> then) {
    if (ended->end())
        return true;
    again_later(std::make_shared<attempt>(attempt{loop, std::move(ended), until, std::move(then)}));
    return false;
}

}  // namespace cohort::group_room
