// SPDX-License-Identifier: BSL-1.0
// Every order of events that a small pool can meet, to some depth, and long random ones. The stage
// checks each order that the dispatcher gives; at the end everybody finishes or dies.
#include "pool_stage.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

namespace pool_plays_test {

using namespace cohort::test;

namespace {

/// Lets workers get ready, finish and die by chance until the request is granted.
void end_all(stage& on, request_id request, std::minstd_rand& random) {
    const auto pick = [&](unsigned n) { return static_cast<int>(random() % n); };
    const auto any = [&](const auto& of) {
        return std::next(of.begin(), pick(static_cast<unsigned>(of.size())))->first;
    };
    for (int turn = 0; !on.granted(request); ++turn) {
        REQUIRE(turn < 10'000);
        if (!on.calls().empty() && pick(2) == 0)
            on.finish(on.calls().begin()->first);
        else if (!on.told_to_end().empty() && !on.live().empty() && pick(2) == 0) {
            const auto w = any(on.live());
            if (on.told_to_end().contains(w))
                on.die(w);
        } else if (!on.live().empty() && pick(2) == 0)
            on.ready(any(on.live()));
        else
            on.pass_to_deadline();
    }
    CHECK(on.all_ended());
    CHECK(on.live().empty());
    CHECK_FALSE(on.machine.deadline());
}

enum class what { submit, submit_briefly, cancel, ready, finish, refuse, die, time, recycle, stop };
constexpr int events = 10;

void happen(stage& on, what event, call_id& last) {
    switch (event) {
    case what::submit:
        last = on.submit();
        break;
    case what::submit_briefly:
        last = on.submit(0ms, 1ms);
        break;
    case what::cancel:
        if (last > 0)
            on.cancel(last, last % 2 == 0);
        break;
    case what::ready:
        if (!on.live().empty())
            on.ready(on.live().rbegin()->first);
        break;
    case what::finish:
        if (!on.calls().empty())
            on.finish(on.calls().begin()->first);
        break;
    case what::refuse:
        if (!on.calls().empty())
            on.refuse(on.calls().begin()->first);
        break;
    case what::die:
        if (!on.live().empty())
            on.die(on.live().begin()->first);
        break;
    case what::time:
        on.pass_to_deadline();
        break;
    case what::recycle:
        if (on.machine.is_open())
            on.recycle();
        break;
    case what::stop:
        on.stop();
        break;
    }
}

}  // namespace

TEST_CASE("pool plays: every order of a few events loses no call and keeps every rule") {
    constexpr int depth = under_asan || under_tsan ? 5 : 6;
    rules r;
    r.size = 2;
    r.at_least = 1;
    r.tasks_per_worker = 2;
    r.start_attempts = 2;
    r.drain_period = 10ms;
    std::vector<int> sequence(depth, 0);
    std::minstd_rand random(1);
    for (bool is_over = false; !is_over;) {
        CAPTURE(sequence);
        stage on(r);
        call_id last = 0;
        for (const int event : sequence)
            happen(on, static_cast<what>(event), last);
        end_all(on, on.stop(), random);
        is_over = true;
        for (int& event : sequence) {
            event = (event + 1) % events;
            if (event != 0) {
                is_over = false;
                break;
            }
        }
    }
}

TEST_CASE("pool plays: random events lose no call and keep every rule") {
    for (std::uint32_t seed = 0; seed < 3'000; ++seed) {
        CAPTURE(seed);
        std::minstd_rand random(seed + 1);
        const auto pick = [&](unsigned n) { return static_cast<int>(random() % n); };
        rules r;
        r.size = 1 + pick(4);
        r.at_least = pick(static_cast<unsigned>(r.size) + 1);
        r.tasks_per_worker = static_cast<std::uint64_t>(pick(3));
        r.memory_per_worker = pick(2) == 0 ? 0 : 100;
        r.overlap = pick(3) != 0;
        r.starts_at_once = 1 + pick(3);
        r.start_attempts = 1 + pick(3);
        r.drain_period = std::chrono::milliseconds(pick(200));
        stage on(r, seed);
        const auto any = [&](const auto& of) {
            return std::next(of.begin(), pick(static_cast<unsigned>(of.size())))->first;
        };
        call_id calls = 0;
        for (int step = 0; step < 60; ++step) {
            switch (pick(16)) {
            case 0:
            case 1:
            case 2:
            case 3: {
                const auto wait =
                    pick(3) == 0 ? std::optional<duration>(pick(50) * 1ms) : std::nullopt;
                const auto run =
                    pick(3) == 0 ? std::optional<duration>((1 + pick(50)) * 1ms) : std::nullopt;
                calls = on.submit(wait, run);
                break;
            }
            case 4:
                if (calls > 0)
                    on.cancel(1 + static_cast<call_id>(pick(static_cast<unsigned>(calls))),
                              pick(2) == 0);
                break;
            case 5:
            case 6:
            case 7:
                if (!on.live().empty())
                    on.ready(any(on.live()));
                break;
            case 8:
            case 9:
                if (!on.calls().empty() && pick(8) == 0)
                    on.refuse(any(on.calls()));
                else if (!on.calls().empty())
                    on.finish(any(on.calls()), pick(2) == 0);
                break;
            case 10:
                if (!on.live().empty())
                    on.die(any(on.live()));
                break;
            case 11:
                on.pass(std::chrono::milliseconds(pick(100)));
                break;
            case 12:
                on.pass_to_deadline();
                break;
            case 13:
                if (!on.live().empty())
                    on.measure(any(on.live()), 150);
                break;
            case 14:
                if (on.machine.is_open() && pick(4) == 0)
                    on.recycle();
                else if (on.machine.is_open() && pick(4) == 0)
                    on.resize(1 + pick(5));
                break;
            case 15:
                if (pick(12) == 0)
                    on.drain();
                else if (pick(12) == 0)
                    on.stop();
                else if (pick(20) == 0)
                    on.drop();
                break;
            }
        }
        end_all(on, pick(2) == 0 ? on.drain() : on.stop(), random);
    }
}

}  // namespace pool_plays_test
