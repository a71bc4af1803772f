// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/credits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace hosts_credits_test {

using namespace cohort::multihost;

TEST_CASE("hosts credits: a sender takes what is left") {
    sender_credit credit(10);
    CHECK(credit.take(4) == 4);
    CHECK(credit.take(7) == 6);
    CHECK(credit.take(1) == 0);
    CHECK_FALSE(credit.given(0));
    CHECK(credit.take(1) == 0);
    CHECK_FALSE(credit.given(5));
    CHECK(credit.left() == 5);
}

TEST_CASE("hosts credits: more than the window is a breach, and changes nothing") {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    sender_credit sender(10);
    CHECK(sender.given(1) == breach::overcredit);
    CHECK(sender.take(3) == 3);
    CHECK(sender.given(4) == breach::overcredit);
    CHECK(sender.given(most) == breach::overcredit);
    CHECK(sender.left() == 7);
    CHECK_FALSE(sender.given(3));
    receiver_credit receiver(10);
    CHECK_FALSE(receiver.received(4));
    CHECK(receiver.received(7) == breach::credit);
    CHECK(receiver.received(most) == breach::credit);
    CHECK(receiver.held() == 4);
    CHECK_FALSE(receiver.received(6));
    CHECK(receiver.received(1) == breach::credit);
}

TEST_CASE("hosts credits: a reserve is spent only by what must not wait") {
    sender_credit sender(10, 5);
    CHECK(sender.left() == 10);
    CHECK(sender.take(12) == 10);
    CHECK(sender.take(12) == 0);
    CHECK(sender.take(12, spend::reserve_too) == 5);
    CHECK_FALSE(sender.given(5));
    CHECK(sender.left() == 0);
    CHECK(sender.left(spend::reserve_too) == 5);
    CHECK(sender.given(11) == breach::overcredit);
    receiver_credit receiver(10, 5);
    CHECK_FALSE(receiver.received(15));
    CHECK(receiver.received(1) == breach::credit);
    receiver.consumed(5);
    CHECK(receiver.take_due() == 5);  // half of the window
}

TEST_CASE("hosts credits: a receiver gives back when half of the window is consumed") {
    receiver_credit credit(10);
    CHECK_FALSE(credit.received(10));
    credit.consumed(4);
    CHECK(credit.take_due() == 0);
    credit.consumed(1);
    CHECK(credit.take_due() == 5);
    CHECK(credit.take_due() == 0);
    CHECK(credit.held() == 5);
    credit.consumed(1'000);  // more than is here
    CHECK(credit.held() == 0);
    CHECK(credit.take_due() == 5);
}

TEST_CASE("hosts credits: in every order of events no byte is lost and nobody waits for ever") {
    using cohort::multihost::receiver_credit;
    for (std::uint64_t window = 1; window <= 4; ++window) {
        CAPTURE(window);
        // A credit travels while the sender goes on; of each state every next one is tried.
        struct play {
            sender_credit sender;
            receiver_credit receiver;
            std::uint64_t data = 0;  // under way
            std::uint64_t credit = 0;
            auto state() const { return std::tuple(sender.left(), receiver.held(), data, credit); }
        };
        std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>> seen;
        std::vector<play> open{{sender_credit(window), receiver_credit(window)}};
        while (!open.empty()) {
            const auto now = open.back();
            open.pop_back();
            if (!seen.insert(now.state()).second)
                continue;
            REQUIRE(now.sender.left() + now.data + now.receiver.held() + now.credit <= window);
            const bool can_go_on =
                now.sender.left() > 0 || now.data > 0 || now.credit > 0 || now.receiver.held() > 0;
            REQUIRE(can_go_on);
            for (std::uint64_t n = 1; n <= window; ++n) {
                auto next = now;
                next.data += next.sender.take(n);
                open.push_back(next);
                next = now;
                if (n <= next.data) {
                    REQUIRE_FALSE(next.receiver.received(n));
                    next.data -= n;
                    open.push_back(next);
                }
                next = now;
                next.receiver.consumed(n);
                next.credit += next.receiver.take_due();
                open.push_back(next);
            }
            auto next = now;
            REQUIRE_FALSE(next.sender.given(next.credit));
            next.credit = 0;
            open.push_back(next);
        }
        CHECK(seen.size() > window);
    }
}

TEST_CASE("hosts credits: a gigabyte passes through a window of a megabyte") {
    sender_credit sender;
    receiver_credit receiver;
    std::minstd_rand random(1);
    std::uint64_t left = std::uint64_t{1} << 30;
    std::uint64_t credits = 0;
    while (left > 0) {
        const auto sent = sender.take(std::min<std::uint64_t>(left, 1 + random() % 65'536));
        REQUIRE_FALSE(receiver.received(sent));
        REQUIRE(receiver.held() <= usual_window);
        left -= sent;
        receiver.consumed(random() % (2 * 65'536));
        if (const auto due = receiver.take_due(); due > 0) {
            REQUIRE_FALSE(sender.given(due));
            ++credits;
        }
        if (sent == 0)
            receiver.consumed(usual_window);
    }
    CHECK(credits <= 2'048);
}

}  // namespace hosts_credits_test
