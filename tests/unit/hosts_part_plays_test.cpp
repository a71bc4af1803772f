// SPDX-License-Identifier: BSL-1.0
// A part and its agent, with a link between them that delays, loses, doubles and reorders what the
// agent says.
#include "hosts_part_support.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace hosts_part_plays_test {

using namespace hosts_link_test;

namespace {

constexpr std::size_t workers = 2;

/// What may happen next.
enum class move {
    ask_start,
    ask_gate,
    ask_stop,
    agent_starts,
    agent_fails,
    first_ends,
    second_ends,
    agent_reports,
    deliver,
    deliver_second,  // before the first
    lose,
    repeat,
    deadline,
    cut,
};
constexpr int good_moves = 9;  // of a link that only delays
constexpr int all_moves = 14;

class play {
public:
    /// @return false: it can't happen now
    bool make(move next) {
        now_ += 1ms;
        switch (next) {
        case move::ask_start:
            return origin(part_hears::start, !watched.has_sent(part_does::send_start));
        case move::ask_gate:
            return origin(part_hears::open_gate, watched.part.current() == part_state::gated);
        case move::ask_stop:
            return origin(part_hears::stop, !watched.has_sent(part_does::send_stop));
        case move::agent_starts:
        case move::agent_fails:
            return start(next == move::agent_starts);
        case move::first_ends:
        case move::second_ends:
            return end(next == move::first_ends ? 0 : 1);
        case move::agent_reports:
            return report();
        case move::deliver:
            return deliver(0);
        case move::deliver_second:
            return deliver(1);
        case move::lose:
            return lose();
        case move::repeat:
            return repeat();
        case move::deadline:
            return time();
        case move::cut:
            return origin(part_hears::cut, true);
        }
        return false;
    }

    /// All that is under way arrives, and what the agent owes is said.
    void finish() {
        make(move::ask_stop);
        for (bool any = true; any && !watched.part.is_over();) {
            any = false;
            for (const auto next : {move::agent_starts, move::first_ends, move::second_ends,
                                    move::agent_reports, move::deliver})
                any = make(next) || any;
        }
    }

    watched_part watched{workers};

private:
    bool origin(part_hears what, bool possible) {
        if (possible && !watched.part.is_over())
            watched.on({what, 0, {30s, 10s}, breach::kind}, now_);
        return possible;
    }
    bool asked() const { return watched.has_sent(part_does::send_start); }
    bool start(bool well) {
        if (!asked() || start_is_over_)
            return false;
        start_is_over_ = true;
        has_failed_ = !well;
        // Who had started before another could not is ended.
        under_way_.push_back({well ? part_hears::started : part_hears::not_started});
        return true;
    }
    bool end(std::size_t worker) {
        if (!start_is_over_ || has_failed_ || ended_[worker])
            return false;
        ended_[worker] = true;
        under_way_.push_back({part_hears::ended, worker});
        return true;
    }
    bool report() {
        if (has_reported_ || has_failed_ || !ended_[0] || !ended_[1])
            return false;
        has_reported_ = true;
        under_way_.push_back({part_hears::reported});
        return true;
    }
    bool deliver(std::size_t which) {
        if (under_way_.size() <= which)
            return false;
        const auto at = under_way_.begin() + static_cast<std::ptrdiff_t>(which);
        const auto e = *at;
        under_way_.erase(at);
        watched.on(e, now_);
        return true;
    }
    bool lose() {
        if (under_way_.empty())
            return false;
        under_way_.pop_front();
        return true;
    }
    bool repeat() {
        if (under_way_.empty())
            return false;
        under_way_.push_back(under_way_.front());
        return true;
    }
    bool time() {
        if (!watched.part.deadline())
            return false;
        now_ = *watched.part.deadline();
        watched.on({part_hears::deadline}, now_);
        return true;
    }

    time_point now_ = part_zero;
    std::deque<part_event> under_way_;
    bool start_is_over_ = false;
    bool has_failed_ = false;
    bool ended_[workers] = {};
    bool has_reported_ = false;
};

void check(const play& of) {
    if (of.watched.broken != nullptr)
        FAIL(of.watched.broken);
}

/// The link only delays: nothing is lost, and everybody's end is known.
void check_good_end(play of) {
    of.finish();
    check(of);
    REQUIRE(of.watched.part.current() == part_state::reported);
    REQUIRE((of.watched.all_ended() || of.watched.has_sent(part_does::report_not_started) ||
             !of.watched.has_sent(part_does::send_start)));
}

/// The link does its worst: there is an end all the same, at the deadline or with the link.
void check_any_end(play of) {
    of.make(move::ask_stop);
    if (!of.make(move::deadline))
        of.make(move::cut);
    check(of);
    REQUIRE(of.watched.part.is_over());
}

struct every_play {
    int moves;
    void (*check_end)(play);
    std::vector<int> path = {};
    std::size_t plays = 0;

    void go_on(const play& from, int depth) {
        ++plays;
        {
            CAPTURE(path);
            check(from);
            check_end(from);
        }
        if (depth == 0 || from.watched.part.is_over())
            return;
        for (int next = 0; next < moves; ++next) {
            auto then = from;
            if (!then.make(static_cast<move>(next)))
                continue;
            path.push_back(next);
            go_on(then, depth - 1);
            path.pop_back();
        }
    }
};

}  // namespace

TEST_CASE("hosts part plays: with a link that only delays every worker's end is known") {
    every_play plays{good_moves, &check_good_end};
    plays.go_on(play{}, 12);
    CHECK(plays.plays > 1'000);
}

TEST_CASE("hosts part plays: with a link that does its worst each end is told once at most") {
    every_play plays{all_moves, &check_any_end};
    plays.go_on(play{}, cohort::test::under_asan || cohort::test::under_tsan ? 8 : 9);
    CHECK(plays.plays > 10'000);
}

TEST_CASE("hosts part plays: long random plays keep every rule") {
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        CAPTURE(seed);
        std::minstd_rand random(seed + 1);
        play one;
        for (int i = 0; i < 40; ++i)
            one.make(static_cast<move>(random() % (all_moves - (random() % 8 == 0 ? 0U : 2U))));
        check(one);
        check_any_end(one);
    }
}

}  // namespace hosts_part_plays_test
