// SPDX-License-Identifier: BSL-1.0
// Which ends of workers are kept for next() and for the histories.
#include "group/state/published_ends.hpp"
#include "group/supervisor/result_descriptors.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace published_ends_test {

using namespace cohort;
using groups::published_ends;

namespace {

std::shared_ptr<detail::ended_worker> end_of(int index, int attempt, bool restarts) {
    outcome left;
    left.index = index;
    left.attempt = attempt;
    auto end = std::make_shared<detail::ended_worker>();
    end->left = std::make_shared<const outcome>(std::move(left));
    end->restarts = restarts;
    return end;
}

struct told {
    int index;
    int attempt;
    bool restarted;
    friend bool operator==(const told&, const told&) = default;
};

std::vector<told> all_untold(published_ends& of) {
    std::vector<told> found;
    for (; const auto* next = of.first_untold(); of.pop_untold()) {
        const auto one = (*next)->whole();
        found.push_back({one.index, one.attempt, one.restarted});
    }
    return found;
}

}  // namespace

TEST_CASE("published ends: an end that another attempt follows later is told as such") {
    published_ends ends(2);
    ends.add(end_of(1, 0, false));
    ends.add(end_of(0, 0, true));
    CHECK(ends.complete() == 1);
    CHECK(ends.note_restarts({0, 1}) == std::set<int>{1});
    CHECK(ends.complete() == 0);
    CHECK(ends.last()[1] == nullptr);
    CHECK(all_untold(ends) == std::vector<told>{{1, 0, true}, {0, 0, true}});
}

TEST_CASE(
    "published ends: the history has the first attempt and the last 99, each without its own") {
    published_ends ends(1);
    for (int attempt = 0; attempt < 500; ++attempt) {
        auto end = end_of(0, attempt, false);
        ends.add_past_to(*end);
        ends.add(std::move(end));
        if (attempt < 499)
            CHECK(ends.note_restarts({0}).contains(0));
    }
    const auto& last = *ends.last()[0];
    REQUIRE(last.past.size() == 99);
    for (const auto& attempt : last.past)
        CHECK(attempt->past.empty());
    const auto history = last.whole().history;
    REQUIRE(history.size() == 100);
    CHECK(history[0].attempt == 0);
    for (int place = 1; place < 100; ++place)
        CHECK(history[static_cast<std::size_t>(place)].attempt == 400 + place);
}

TEST_CASE("published ends: of those that nobody asks for, the last ones of each worker stay") {
    published_ends ends(3);
    ends.add(end_of(2, 0, false));
    for (int attempt = 0; attempt < 5'000; ++attempt)
        ends.add(end_of(0, attempt, true));
    ends.add(end_of(0, 5'000, false));
    const auto kept = all_untold(ends);
    CHECK(kept.size() <= 1'004);
    CHECK(kept.size() >= 1'000);
    CHECK(kept.front() == told{2, 0, false});
    CHECK(kept.back() == told{0, 5'000, false});
    CHECK(kept[1].attempt == kept[2].attempt - 1);
}

TEST_CASE("published ends: few that others followed keep a result that holds descriptors") {
    published_ends ends(1);
    const auto with_descriptors = [](int attempt, bool restarts) {
        auto end = end_of(0, attempt, restarts);
        auto left = *end->left;
        detail::outcome_access::result(left) =
            std::make_shared<const detail::result_bytes>(detail::result_bytes{"int", {}});
        detail::outcome_access::descriptors(left) =
            std::make_shared<detail::arrived_descriptors>(share::arrived());
        end->left = std::make_shared<const outcome>(std::move(left));
        return end;
    };
    for (int attempt = 0; attempt < 50; ++attempt)
        ends.add(with_descriptors(attempt, true));
    auto last = with_descriptors(50, false);
    ends.add_past_to(*last);
    ends.add(std::move(last));
    int with_result = 0;
    for (; const auto* next = ends.first_untold(); ends.pop_untold()) {
        const auto one = (*next)->whole();
        with_result += one.has_result() ? 1 : 0;
        CHECK(one.has_result() == (one.attempt >= 34));
        CHECK((one.note().find("was dropped") != std::string::npos) == !one.has_result());
    }
    CHECK(with_result == 17);
    const auto whole = ends.last()[0]->whole();
    CHECK(whole.has_result());
    for (const auto& attempt : whole.history)
        CHECK(attempt.has_result() == (attempt.attempt == 50));
}

}  // namespace published_ends_test
