// SPDX-License-Identifier: BSL-1.0
// Beats, their round trips, and when silence means that the other end is lost.
#include "hosts/link/lease.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace hosts_lease_test {

using namespace cohort::multihost;
using namespace std::chrono_literals;

namespace {

constexpr time_point zero{1h};
const lease_rules usual{};

/// Does what the lease asks until it asks for nothing. @return what it asked for
std::vector<lease_action> act(lease& of, time_point now, bool something_to_read = false) {
    std::vector<lease_action> done;
    for (auto next = of.next(now); next != lease_action::wait; next = of.next(now)) {
        REQUIRE(done.size() < 10);
        done.push_back(next);
        if (next == lease_action::send_beat)
            of.make_beat(now);
        if (next == lease_action::read) {
            if (something_to_read)
                of.received(now);
            of.has_read();
        }
    }
    return done;
}

/// Does what the lease asks whenever it asks, up to a time.
void act_until(lease& of, time_point until) {
    for (auto due = of.deadline(); due && *due < until; due = of.deadline())
        act(of, *due);
}

using actions = std::vector<lease_action>;
constexpr auto send_beat = lease_action::send_beat;
constexpr auto read = lease_action::read;
constexpr auto end = lease_action::end;

/// Two ends and the link between them.
struct ends {
    struct one {
        lease of;
        std::deque<std::pair<time_point, beat>> coming = {};
        bool is_stopped = false;
        int beats = 0;
        std::optional<time_point> ended = {};
    };

    explicit ends(duration way, lease_rules one = usual, lease_rules other = usual)
        : both{{lease(one, zero)}, {lease(other, zero)}}, delay(way) {}

    void run_until(time_point until) {
        for (; now < until; now += 10ms)
            for (std::size_t i = 0; i < 2; ++i)
                if (!both[i].is_stopped)
                    turn(both[i], both[1 - i]);
    }
    void receive(one& end) {
        for (; !end.coming.empty() && end.coming.front().first <= now; end.coming.pop_front()) {
            end.of.received(now);
            end.of.received_beat(end.coming.front().second, now);
        }
    }
    void turn(one& end, one& other) {
        if (reads_first)
            receive(end);
        for (auto next = end.of.next(now); next != lease_action::wait; next = end.of.next(now)) {
            if (next == lease_action::send_beat) {
                ++end.beats;
                const auto sent = end.of.make_beat(now);
                if (!is_cut)
                    other.coming.push_back({now + delay, sent});
            } else if (next == lease_action::read) {
                receive(end);
                end.of.has_read();
            } else if (next == lease_action::end)
                end.ended = now;
        }
        receive(end);
    }

    one both[2];
    duration delay;
    time_point now = zero;
    bool is_cut = false;
    bool reads_first = true;
};

}  // namespace

TEST_CASE("hosts lease: a beat is due when nothing was sent for a period") {
    lease of(usual, zero);
    CHECK(of.next(zero) == send_beat);  // so that a round trip is soon known
    of.received_beat({1, of.make_beat(zero).number, 0ns}, zero + 100ms);
    CHECK(act(of, zero + 999ms).empty());
    CHECK(act(of, zero + 1s) == actions{send_beat});
    of.received(zero + 1s);
    of.sent(zero + 1900ms);
    CHECK(act(of, zero + 2s).empty());
    CHECK(of.deadline() == zero + 2900ms);
    CHECK(act(of, zero + 2900ms) == actions{send_beat});
}

TEST_CASE("hosts lease: a beat is answered on a busy link, too, with the time it was held") {
    lease of(usual, zero);
    of.received_beat({1, of.make_beat(zero).number, 0ns}, zero + 100ms);
    of.make_beat(zero + 100ms);
    of.received_beat({2, 0, 0ns}, zero + 300ms);
    of.received_beat({3, 0, 0ns}, zero + 400ms);
    for (auto now = zero + 300ms; now < zero + 1300ms; now += 100ms) {
        of.sent(now);
        CHECK(act(of, now).empty());
    }
    of.sent(zero + 1300ms);
    CHECK(of.next(zero + 1300ms) == send_beat);
    const auto answer = of.make_beat(zero + 1300ms);
    CHECK(answer.answers == 3);
    CHECK(answer.held == 900ms);
    CHECK(of.make_beat(zero + 1400ms).answers == 0);  // once
}

TEST_CASE("hosts lease: silence ends it after one look, once") {
    lease of(usual, zero);
    act_until(of, zero + 10s);
    CHECK_FALSE(of.has_ended());
    CHECK(of.deadline() == zero + 10s);
    CHECK(of.next(zero + 10s) == read);
    CHECK_FALSE(of.has_ended());
    CHECK(of.next(zero + 10s) == send_beat);  // meanwhile its own beats go on
    of.make_beat(zero + 10s);
    CHECK(of.deadline() == zero + 11s);
    CHECK(of.next(zero + 10s) == lease_action::wait);
    of.has_read();
    CHECK(of.has_ended());
    CHECK_FALSE(of.deadline());
    CHECK(act(of, zero + 10s) == actions{end});
    CHECK(act(of, zero + 100s).empty());
    of.received(zero + 100s);
    CHECK(of.has_ended());
}

TEST_CASE("hosts lease: what lies unread keeps it") {
    lease of(usual, zero);
    act_until(of, zero + 10s);
    CHECK(act(of, zero + 10s, true) == actions{read, send_beat});
    CHECK_FALSE(of.has_ended());
    CHECK(of.last_heard() == zero + 10s);
    act_until(of, zero + 20s);
    CHECK_FALSE(of.has_ended());
    CHECK(act(of, zero + 20s) == actions{read, end});
}

TEST_CASE("hosts lease: time for which this end did not run is no silence") {
    lease of(usual, zero);
    act_until(of, zero + 5s);
    CHECK(act(of, zero + 65s) == actions{send_beat});  // it was due at 5 s
    SUBCASE("then silence counts as before") {
        act_until(of, zero + 70s);
        CHECK_FALSE(of.has_ended());
        CHECK(act(of, zero + 70s) == actions{read, end});
    }
    SUBCASE("more of it counts, too") {
        CHECK(act(of, zero + 69s) == actions{send_beat});
        act_until(of, zero + 73s);
        CHECK_FALSE(of.has_ended());
        CHECK(act(of, zero + 73s) == actions{read, end});
    }
    SUBCASE("what comes counts from there") {
        of.received(zero + 66s);
        act_until(of, zero + 76s);
        CHECK_FALSE(of.has_ended());
        CHECK(act(of, zero + 76s) == actions{read, end});
    }
    SUBCASE("also what came before it looked") {
        of.received(zero + 95s);
        act_until(of, zero + 66s);
        CHECK(act(of, zero + 95s) == actions{send_beat});
        act_until(of, zero + 105s);
        CHECK_FALSE(of.has_ended());
        CHECK(act(of, zero + 105s) == actions{read, end});
    }
}

TEST_CASE("hosts lease: two ends keep each other's lease with a beat a second") {
    for (const auto delay : {0ms, 10ms, 300ms, 3000ms}) {
        CAPTURE(delay.count());
        ends link(delay);
        link.run_until(zero + 100s);
        for (const auto& each : link.both) {
            CHECK_FALSE(each.ended);
            CHECK(each.beats >= 100);
            CHECK(each.beats <= 103);
            REQUIRE(each.of.trips().smallest());
            CHECK(*each.of.trips().smallest() >= 2 * delay);
            CHECK(*each.of.trips().smallest() <= 2 * delay + 20ms);
        }
    }
}

TEST_CASE("hosts lease: beats in step are due at multiples of the period") {
    const lease_rules in_step{.is_in_step = true};
    lease of(in_step, zero + 300ms);
    of.received_beat({1, of.make_beat(zero + 300ms).number, 0ns}, zero + 400ms);
    CHECK(of.deadline() == zero + 1s);
    CHECK(act(of, zero + 999ms).empty());
    CHECK(act(of, zero + 1s) == actions{send_beat});
    CHECK(of.deadline() == zero + 2s);
    of.received_beat({2, 0, 0ns}, zero + 1001ms);
    of.sent(zero + 1700ms);
    CHECK(of.deadline() == zero + 2s);  // never more than one each second
    CHECK(act(of, zero + 2s) == actions{send_beat});
}

TEST_CASE("hosts lease: an end that answers at once sends no other beats") {
    const lease_rules in_step{.is_in_step = true};
    const lease_rules answers{.beat_period = 1100ms, .answers_at_once = true};
    for (const auto delay : {0ms, 10ms, 300ms}) {
        CAPTURE(delay.count());
        ends link(delay, in_step, answers);
        link.run_until(zero + 100s);
        for (const auto& each : link.both) {
            CHECK_FALSE(each.ended);
            CHECK(each.beats >= 99);
            CHECK(each.beats <= 103);
            REQUIRE(each.of.trips().smallest());
            CHECK(*each.of.trips().smallest() <= 2 * delay + 20ms);
        }
    }
}

TEST_CASE("hosts lease: a cut link is noticed by both ends in time") {
    ends link(50ms);
    link.run_until(zero + 20s);
    link.is_cut = true;
    link.run_until(zero + 40s);
    for (const auto& each : link.both) {
        REQUIRE(each.ended);
        CHECK(*each.ended >= zero + 29s);
        CHECK(*each.ended <= zero + 31s);
    }
}

TEST_CASE("hosts lease: ends outlive a stop of both of any length, and a short one of either") {
    for (auto length = 1s + 0ms; length < 25s; length += 70ms)
        for (const auto later : {0ms, 200ms, 8000ms}) {
            CAPTURE(length.count());
            CAPTURE(later.count());
            ends link(50ms);
            link.reads_first = length % 140ms == 0ms;
            link.run_until(zero + 20s);
            link.now += length;  // the machine was suspended
            link.both[1].is_stopped = true;
            link.run_until(link.now + later);
            link.both[1].is_stopped = false;
            link.run_until(link.now + 30s);
            CHECK_FALSE(link.both[0].ended);
            CHECK_FALSE(link.both[1].ended);
        }
}

TEST_CASE(
    "hosts lease: an end that was stopped for longer than the time-out is lost to the other") {
    ends link(50ms);
    link.run_until(zero + 20s);
    link.both[0].is_stopped = true;
    link.run_until(zero + 40s);
    CHECK(link.both[1].ended);
    CHECK_FALSE(link.both[0].ended);
}

TEST_CASE("hosts lease: a time-out without end is none") {
    lease of({1s, duration::max()}, zero);
    CHECK(act(of, zero + 1000h) == actions{send_beat});
    CHECK_FALSE(of.has_ended());
}

TEST_CASE("hosts lease: answers that can't be give no round trip") {
    round_trips trips;
    trips.answered(1, 0ns, zero);  // never sent
    CHECK_FALSE(trips.smallest());
    CHECK(trips.sent(zero) == 1);
    CHECK(trips.sent(zero + 1s) == 2);
    trips.answered(0, 0ns, zero + 2s);
    trips.answered(3, 0ns, zero + 2s);
    trips.answered(17, 0ns, zero + 2s);
    trips.answered(~std::uint64_t{0}, 0ns, zero + 2s);
    CHECK_FALSE(trips.smallest());
    trips.answered(1, 2001ms, zero + 2s);  // held for longer than it was under way
    trips.answered(1, 1900ms, zero + 2s);  // answered before
    CHECK_FALSE(trips.smallest());
    trips.answered(2, -1ns, zero + 2s);
    CHECK_FALSE(trips.smallest());
    trips.sent(zero + 3s);
    trips.answered(3, duration::max(), zero + 4s);
    trips.sent(zero + 5s);
    trips.answered(4, duration::min(), zero + 6s);
    trips.sent(zero + 7s);
    trips.answered(5, 0ns, zero + 6s);  // before it was sent
    CHECK_FALSE(trips.smallest());
    trips.sent(zero + 8s);
    trips.answered(6, 500ms, zero + 9s);
    CHECK(trips.smallest() == 500ms);
    for (int i = 0; i < 17; ++i)
        trips.sent(zero + 10s);
    trips.answered(7, 0ns, zero + 10s);  // too long ago
    CHECK(trips.smallest() == 500ms);
    trips.answered(23, 0ns, zero + 10s + 52us);
    CHECK(trips.smallest() == 52us);
}

TEST_CASE("hosts lease: random answers never give a negative round trip") {
    std::minstd_rand random(1);
    round_trips trips;
    auto now = zero;
    for (int i = 0; i < 100'000; ++i) {
        now += random() % 1000 * 1us;
        if (random() % 2 == 0)
            trips.sent(now);
        const auto number = random() % 4 == 0 ? random() * std::uint64_t{1} << 33
                                              : static_cast<std::uint64_t>(i) / 2 - random() % 20;
        trips.answered(number, static_cast<std::int64_t>(random() % 100'000) * 1us - 1ms, now);
        if (trips.smallest()) {
            REQUIRE(*trips.smallest() >= 0ns);
            REQUIRE(*trips.smallest() <= now - zero);
        }
    }
}

}  // namespace hosts_lease_test
