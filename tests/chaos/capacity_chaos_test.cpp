// SPDX-License-Identifier: BSL-1.0
// Kills and stops processes that put to and get from queues with a capacity, at any moment. After
// that each queue takes exactly as many values as before. COHORT_CHAOS_SEED as for the other tests;
// COHORT_TEST_LONG=1: 100,000 kills and stops.
#include "plan.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace capacity_chaos_test {

using namespace std::chrono_literals;
using chaos::random_numbers;

namespace {

constexpr auto hang = 60s;

/// A copy of this process that puts and gets until it is killed.
class copy {
public:
    copy(const cohort::queue<int>& numbers, std::uint64_t seed) : pid_(::fork()) {
        REQUIRE(pid_ >= 0);
        if (pid_ > 0)
            return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            use(numbers, seed);
        } catch (const std::exception& e) {  // not to be caught by what this copy has of its parent
            fmt::print("a copy: {}\n", e.what());
            std::fflush(stdout);
        }
        ::_exit(1);
    }
    copy(const copy&) = delete;
    copy& operator=(const copy&) = delete;
    copy(copy&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
    copy& operator=(copy&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~copy() {
        if (pid_ <= 0)
            return;
        signal(SIGKILL);
        int status = 0;
        CHECK(::waitpid(pid_, &status, 0) == pid_);
        CHECK(WIFSIGNALED(status));  // it has not ended by itself
    }
    void signal(int number) const { ::kill(pid_, number); }

private:
    static void use(const cohort::queue<int>& numbers, std::uint64_t seed) {
        for (random_numbers random(seed);;) {
            if (random.chance(50))
                (void)numbers.writer().put(1, 1ms);
            else
                (void)numbers.reader().get(1ms);
        }
    }

    pid_t pid_;
};

/// Kills and stops copies. @return how many signals it sent
int harm(const cohort::queue<int>& numbers, random_numbers& random) {
    std::vector<copy> copies;
    for (int i = 0; i < 4; ++i)
        copies.emplace_back(numbers, std::uint64_t(random.below(1 << 30)));
    constexpr int signals = 50;
    for (int i = 0; i < signals; ++i) {
        ::usleep(useconds_t(random.below(500)));
        auto& one = copies[std::size_t(random.below(int(copies.size())))];
        const int what = random.below(3);
        one.signal(what == 0 ? SIGKILL : what == 1 ? SIGSTOP : SIGCONT);
        if (what == 0)
            one = copy(numbers, std::uint64_t(random.below(1 << 30)));
    }
    return signals;
}

/// Takes all values, and waits until no slot is used: the slot of a put that was killed before it
/// sent is found after some time, and only while nothing waits that may be the value of that put.
void empty(cohort::queue<int>& numbers) {
    while (numbers.try_get()) {
    }
    const auto until = std::chrono::steady_clock::now() + hang;
    while (numbers.size() != 0) {
        REQUIRE_MESSAGE(std::chrono::steady_clock::now() < until, "an empty queue has used slots");
        ::usleep(1000);  // no event tells
    }
}

void expect_exact(cohort::queue<int>& numbers, std::size_t capacity) {
    empty(numbers);
    for (std::size_t i = 0; i < capacity; ++i)
        REQUIRE_MESSAGE(numbers.writer().put(int(i), hang), "the capacity has shrunk");
    int value = 0;
    CHECK(numbers.size() == capacity);
    CHECK_FALSE(numbers.try_put(value));
    for (std::size_t i = 0; i < capacity; ++i)
        CHECK(*numbers.reader().get() == int(i));
    CHECK(numbers.size() == 0);
}

}  // namespace

TEST_CASE("capacity chaos: kills and stops leave the capacity of a queue exact") {
    const bool is_long = std::getenv("COHORT_TEST_LONG") != nullptr;
    const int wanted = is_long ? 100'000 : 400;
    const auto* const given = std::getenv("COHORT_CHAOS_SEED");
    const auto seed = given == nullptr ? std::random_device()() : std::stoull(given);
    fmt::print("[capacities] seed {}, {} kills and stops\n", seed, wanted);
    std::fflush(stdout);
    CAPTURE(seed);
    int round = 0;
    for (int signals = 0; signals < wanted; ++round) {
        CAPTURE(round);
        random_numbers random(chaos::derived_seed(seed, round));
        const auto capacity = std::size_t(random.below(4)) + 1;
        cohort::queue<int> numbers(capacity);
        numbers.keep_both_ends();
        signals += harm(numbers, random);
        expect_exact(numbers, capacity);
        signals += harm(numbers, random);
        expect_exact(numbers, capacity);
    }
}

}  // namespace capacity_chaos_test
