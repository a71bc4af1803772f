// SPDX-License-Identifier: BSL-1.0
// When the outcomes of a group are published: with all parts, in the order of the ends.
#include "group/outcomes/outcomes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <random>
#include <vector>

namespace cohort::groups {
std::ostream& operator<<(std::ostream& out, outcome_step s) { return out << to_string(s); }
}  // namespace cohort::groups

namespace outcomes_test {

using cohort::groups::outcome_step;
using cohort::groups::outcomes;
using cohort::groups::part;
using report = cohort::groups::outcomes::report;

namespace {

constexpr std::array usual{part::record, part::symbols, part::output};

void complete(outcomes& all, int worker) {
    for (const auto p : usual)
        (void)all.note_part(worker, p);
}

/// The workers whose outcomes can be published.
std::vector<int> published(outcomes& all) {
    std::vector<int> workers;
    while (all.next() == outcome_step::publish)
        workers.push_back(all.take_first());
    return workers;
}

}  // namespace

TEST_CASE("outcomes: a group of which no worker has ended waits") {
    outcomes all(2, report::not_wanted);
    CHECK(all.next() == outcome_step::wait);
    CHECK(all.waiting() == 0);
}

TEST_CASE("outcomes: an outcome is published when all its parts are there, in any order") {
    auto order = usual;
    std::ranges::sort(order);
    do {
        outcomes all(1, report::not_wanted);
        all.add(0);
        for (const auto p : order) {
            CHECK(all.next() == outcome_step::wait);
            CHECK(all.is_missing(0, p));
            CHECK_FALSE(all.note_part(0, p));
            CHECK_FALSE(all.is_missing(0, p));
        }
        CHECK(all.waiting() == 1);
        CHECK(published(all) == std::vector{0});
        CHECK(all.waiting() == 0);
    } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("outcomes: they are published in the order in which the workers ended") {
    outcomes all(3, report::not_wanted);
    for (const int worker : {2, 0, 1})
        all.add(worker);
    complete(all, 1);
    complete(all, 0);
    CHECK(published(all).empty());
    complete(all, 2);
    CHECK(published(all) == std::vector{2, 0, 1});
}

TEST_CASE("outcomes: an error is logged when all else is there, and waits for that") {
    for (const auto last : usual) {
        outcomes all(2, report::not_wanted);
        all.add(1);
        all.wants_log(1);
        for (const auto p : usual)
            if (p != last)
                CHECK_FALSE(all.note_part(1, p));
        CHECK(all.note_part(1, last));
        CHECK_FALSE(all.note_part(1, last));  // it is asked for once
        CHECK(all.next() == outcome_step::wait);
        CHECK_FALSE(all.note_part(1, part::log));
        CHECK(published(all) == std::vector{1});
    }
}

TEST_CASE("outcomes: the last one of the group is published after the report is written") {
    outcomes all(2, report::wanted);
    all.add(0);
    complete(all, 0);
    CHECK(published(all) == std::vector{0});
    all.add(1);
    CHECK(all.next() == outcome_step::wait);
    complete(all, 1);
    CHECK(all.next() == outcome_step::write_report);
    CHECK(all.next() == outcome_step::wait);
    CHECK(all.first() == 1);
    all.note_report();
    CHECK(published(all) == std::vector{1});
}

TEST_CASE("outcomes: a report is not written once it is forgotten") {
    outcomes all(1, report::wanted);
    all.add(0);
    all.forget_report();
    complete(all, 0);
    CHECK(published(all) == std::vector{0});
}

TEST_CASE("outcomes: a report that is being written is waited for") {
    outcomes all(1, report::wanted);
    all.add(0);
    complete(all, 0);
    CHECK(all.next() == outcome_step::write_report);
    all.forget_report();
    CHECK(all.next() == outcome_step::wait);
    all.note_report();
    CHECK(published(all) == std::vector{0});
}

TEST_CASE("outcomes: where not all workers have started there is no report") {
    outcomes all(3, report::wanted);
    for (const int worker : {0, 1}) {
        all.add(worker);
        complete(all, worker);
    }
    CHECK(published(all) == std::vector{0, 1});
    CHECK(all.next() == outcome_step::wait);
}

TEST_CASE("outcomes: parts that come late or for nobody change nothing") {
    outcomes all(2, report::not_wanted);
    CHECK_FALSE(all.note_part(0, part::symbols));
    all.wants_log(0);
    all.add(0);
    CHECK(all.is_missing(0, part::symbols));
    complete(all, 0);
    CHECK(published(all) == std::vector{0});
    CHECK_FALSE(all.note_part(0, part::output));
    all.wants_log(0);
    CHECK_FALSE(all.is_missing(0, part::log));
    CHECK(all.next() == outcome_step::wait);
}

TEST_CASE("outcomes: an end that another attempt follows is published, and is not the last") {
    outcomes all(1, report::wanted);
    all.add(0);
    all.note_restart(0);
    complete(all, 0);
    CHECK(published(all) == std::vector{0});
    all.add(1);
    complete(all, 1);
    CHECK(all.next() == outcome_step::write_report);
    all.note_report();
    CHECK(published(all) == std::vector{1});
    CHECK(all.waiting() == 0);
}

TEST_CASE("outcomes: an end that was published as the last may get another attempt") {
    outcomes all(2, report::wanted);
    all.add(0);
    complete(all, 0);
    CHECK(published(all) == std::vector{0});
    all.add(1);
    all.note_restart(1);
    all.note_restart(0);
    complete(all, 1);
    CHECK(published(all) == std::vector{1});
    all.add(2);
    complete(all, 2);
    CHECK(published(all) == std::vector{2});
    all.add(3);
    complete(all, 3);
    CHECK(all.next() == outcome_step::write_report);
}

TEST_CASE("outcomes: whatever comes when, each is published once, and none too early") {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        const int size = 1 + static_cast<int>(random() % 8);
        const bool logs = random() % 2 == 0;
        outcomes all(size, logs ? report::wanted : report::not_wanted);
        std::vector<std::pair<int, part>> missing;
        std::vector<int> order;
        for (int worker = 0; worker < size; ++worker) {
            order.push_back(worker);
            for (const auto p : usual)
                missing.emplace_back(worker, p);
        }
        std::ranges::shuffle(order, random);
        std::ranges::shuffle(missing, random);
        for (const int worker : order) {
            all.add(worker);
            if (logs && random() % 2 == 0)
                all.wants_log(worker);
        }
        std::vector<int> seen;
        bool has_report = false;
        for (const auto& [worker, p] : missing) {
            if (all.note_part(worker, p))
                CHECK_FALSE(all.note_part(worker, part::log));
            for (auto next = all.next(); next != outcome_step::wait; next = all.next()) {
                if (next == outcome_step::write_report) {
                    CHECK_FALSE(has_report);
                    has_report = true;
                    CHECK(all.waiting() == 1);
                    all.note_report();
                    continue;
                }
                for (const auto p_of_first : usual)
                    CHECK_FALSE(all.is_missing(all.first(), p_of_first));
                seen.push_back(all.take_first());
            }
        }
        CHECK(seen == order);
        CHECK(has_report == logs);
    }
}

}  // namespace outcomes_test
