// SPDX-License-Identifier: BSL-1.0
// The state of a barrier, as parties and engines work on it.
#include "share/sync/barrier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace barrier_page_test {

using cohort::exit_status;
using cohort::share::barrier_cause;
using cohort::share::barrier_page;
using arrival = barrier_page::arrival;
using progress = barrier_page::progress;

namespace {

struct memory {
    explicit memory(std::size_t parties)
        : words(barrier_page::bytes_for(parties) / sizeof(std::uint64_t)),
          page(reinterpret_cast<std::byte*>(words.data()), words.size() * sizeof(std::uint64_t)) {
        page.begin(parties);
    }
    std::vector<std::uint64_t> words;
    barrier_page page;
};

barrier_cause ended(int index, exit_status how) {
    return {barrier_cause::kind::worker_ended, index, how};
}

}  // namespace

TEST_CASE("barrier page: the last party completes the phase, and the next one begins") {
    memory m(3);
    for (int round = 0; round < 5; ++round) {
        std::uint32_t first = 0;
        std::uint32_t second = 0;
        std::uint32_t third = 0;
        CHECK(m.page.arrive(0, first) == arrival::waits);
        CHECK(m.page.arrive(-1, second) == arrival::waits);
        CHECK(first == second);
        CHECK(m.page.look(first) == progress::waits);
        CHECK(m.page.now().arrived == 2);
        CHECK(m.page.arrive(1, third) == arrival::completes);
        CHECK(m.page.look(first) == progress::complete);
        CHECK(m.page.now().arrived == 0);
    }
    CHECK(m.page.now().parties == 3);
}

TEST_CASE("barrier page: threads meet thousands of times") {
    constexpr int parties = 4;
    constexpr int phases = 2'000;
    memory m(parties);
    std::atomic<int> count{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < parties; ++i)
        threads.emplace_back([&, i] {
            for (int phase = 1; phase <= phases; ++phase) {
                ++count;
                std::uint32_t mine = 0;
                if (m.page.arrive(i, mine) == arrival::completes)
                    m.page.wake();
                else if (m.page.wait(mine, nullptr) != progress::complete)
                    ++wrong;
                // Some may be in the next phase already, but nobody beyond it.
                const int seen = count;
                wrong += seen < phase * parties || seen > (phase + 1) * parties;
            }
        });
    for (auto& thread : threads)
        thread.join();
    CHECK(wrong == 0);
    CHECK(count == parties * phases);
}

TEST_CASE("barrier page: a broken barrier stays broken, and its first cause stays") {
    memory m(8);
    std::uint32_t phase = 0;
    for (int i = 0; i < 7; ++i)
        CHECK(m.page.arrive(i == 3 ? 7 : i, phase) == arrival::waits);
    m.page.break_by(ended(3, exit_status::from_signal(SIGKILL, false)));
    m.page.break_by(ended(5, exit_status::from_code(1)));
    CHECK(m.page.look(phase) == progress::broken);
    CHECK(m.page.arrive(0, phase) == arrival::broken);
    CHECK_FALSE(m.page.withdraw(0, phase));
    CHECK_FALSE(m.page.drop(0, 1));
    CHECK(m.page.culprit() == 3);
    CHECK(m.page.reason() == "worker 3 has ended (killed by SIGKILL) while 7 of 8 waited");
}

TEST_CASE("barrier page: a phase that was complete before the barrier broke is complete") {
    memory m(2);
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    CHECK(m.page.arrive(0, first) == arrival::waits);
    CHECK(m.page.arrive(1, second) == arrival::completes);
    m.page.break_by(ended(1, exit_status::from_code(0)));
    CHECK(m.page.look(first) == progress::complete);
    CHECK(m.page.wait(first, nullptr) == progress::complete);
    CHECK(m.page.reason() == "worker 1 has ended (exit code 0) while 0 of 2 waited");
}

TEST_CASE("barrier page: a timeout breaks its own phase only, and who breaks another says why") {
    memory m(2);
    m.page.note_workers(2);
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    CHECK(m.page.arrive(0, first) == arrival::waits);
    CHECK(m.page.arrive(1, second) == arrival::completes);
    CHECK_FALSE(m.page.break_phase(first, {barrier_cause::kind::timed_out, -1, {}}));
    CHECK_FALSE(m.page.now().broken);
    CHECK(m.page.arrive(1, second) == arrival::waits);
    m.page.break_by(ended(0, exit_status::from_code(7)));
    CHECK_FALSE(m.page.break_phase(second, {barrier_cause::kind::timed_out, -1, {}}));
    CHECK(m.page.reason() == "worker 0 has ended (exit code 7) while 1 of 2 waited");
    CHECK(barrier_cause::unpacked(barrier_cause{barrier_cause::kind::timed_out, 3, {}}.packed(4), 6)
              .what == barrier_cause::kind::none);
}

TEST_CASE("barrier page: who drops out is not waited for, and is noted once") {
    memory m(3);
    std::uint32_t phase = 0;
    CHECK(m.page.arrive(0, phase) == arrival::waits);
    CHECK_FALSE(m.page.drop(1, 100));
    CHECK(m.page.now().parties == 2);
    CHECK(m.page.drop(2, 200));  // the one that waits is alone now
    CHECK(m.page.look(phase) == progress::complete);
    CHECK(m.page.now().parties == 1);
    CHECK_FALSE(m.page.take_drop(300));
    CHECK(m.page.take_drop(200));
    CHECK_FALSE(m.page.take_drop(200));
    CHECK(m.page.take_drop(100));
    CHECK(m.page.arrive(0, phase) == arrival::completes);
    CHECK_FALSE(m.page.drop(0, 50));
    CHECK(m.page.arrive(0, phase) == arrival::no_party);
}

TEST_CASE("barrier page: a worker may have the number of a process that dropped out as no worker") {
    memory m(3);
    CHECK_FALSE(m.page.drop(-1, 200));
    CHECK(m.page.now().parties == 2);
    CHECK_FALSE(m.page.take_drop(200));
    CHECK_FALSE(m.page.drop(0, 200));
    CHECK(m.page.take_drop(200));
}

TEST_CASE("barrier page: the end of a process that has not dropped out changes no drop") {
    memory m(4);
    for (const int index : {0, 1, 2})
        CHECK_FALSE(m.page.drop(index, 100 + index));
    for (const pid_t other : {0, -1, 99, 103})
        CHECK_FALSE(m.page.take_drop(other));
    for (const pid_t worker : {101, 102, 100})
        CHECK(m.page.take_drop(worker));
}

TEST_CASE("barrier page: counts that somebody made up end no search late") {
    memory m(5);
    m.words[2] = ~std::uint64_t{0};  // the number of workers
    m.words[3] = ~std::uint64_t{0};  // the number of processes that dropped out
    for (const int count : {-1, 0, 5, std::numeric_limits<int>::max()})
        m.page.note_workers(count);
    CHECK(m.words[2] == ~std::uint64_t{0});
    CHECK_FALSE(m.page.take_drop(1));
    CHECK_FALSE(m.page.drop(4, 1));
    std::uint32_t phase = 0;
    CHECK(m.page.arrive(0, phase) == arrival::waits);
    m.page.break_by({barrier_cause::kind::timed_out, -1, {}});
    CHECK(m.page.culprit() == 1);
    CHECK(m.page.reason() == "workers 1, 2 and 3 had not arrived in time; 1 of 4 waited");
}

TEST_CASE("barrier page: an arrival can be taken back until the phase is over") {
    memory m(2);
    std::uint32_t phase = 0;
    CHECK(m.page.arrive(0, phase) == arrival::waits);
    CHECK(m.page.withdraw(0, phase));
    CHECK(m.page.now().arrived == 0);
    CHECK_FALSE(m.page.withdraw(0, phase));
    CHECK(m.page.arrive(1, phase) == arrival::waits);
    const auto before = phase;
    CHECK(m.page.arrive(0, phase) == arrival::completes);
    CHECK_FALSE(m.page.withdraw(1, before));
    CHECK(m.page.now().arrived == 0);
}

TEST_CASE("barrier page: after a timeout the reason names who had not arrived") {
    const auto text_of = [](unsigned parties, int workers, const std::vector<int>& arrived) {
        memory m(parties);
        m.page.note_workers(workers);
        std::uint32_t phase = 0;
        for (const int index : arrived)
            m.page.arrive(index, phase);
        m.page.break_by({barrier_cause::kind::timed_out, -1, {}});
        return std::to_string(m.page.culprit()) + ": " + m.page.reason();
    };
    CHECK(text_of(3, 3, {0, 2}) == "1: worker 1 had not arrived in time; 2 of 3 waited");
    CHECK(text_of(4, 4, {0, 2}) == "1: workers 1 and 3 had not arrived in time; 2 of 4 waited");
    CHECK(text_of(4, 3, {0, 2}) ==
          "1: worker 1 and 1 other had not arrived in time; 2 of 4 waited");
    CHECK(text_of(8, 8, {5}) ==
          "0: workers 0, 1, 2 and 4 others had not arrived in time; 1 of 8 waited");
    CHECK(text_of(3, 2, {0, 1}) == "-1: one party had not arrived in time; 2 of 3 waited");
    CHECK(text_of(9, 2, {0, 1, -1}) == "-1: 6 parties had not arrived in time; 3 of 9 waited");
}

TEST_CASE("barrier page: a wait ends at its deadline") {
    memory m(2);
    std::uint32_t phase = 0;
    CHECK(m.page.arrive(0, phase) == arrival::waits);
    const timespec past{};
    CHECK(m.page.wait(phase, &past) == progress::waits);
}

TEST_CASE("barrier page: a cause is what it was after it went through its word") {
    for (const auto what : {barrier_cause::kind::worker_ended, barrier_cause::kind::timed_out,
                            barrier_cause::kind::not_started})
        for (const int index : {-1, 0, 3, 65'535, 1'000'000})
            for (const auto& how :
                 {exit_status(), exit_status::from_code(0), exit_status::from_code(255),
                  exit_status::from_signal(SIGKILL, false), exit_status::from_signal(64, false)}) {
                const auto back =
                    barrier_cause::unpacked(barrier_cause{what, index, how}.packed(6), 6);
                CHECK(back.what == what);
                CHECK(back.index == index);
                CHECK(back.status == how);
            }
}

TEST_CASE("barrier page: a size that no barrier has is refused") {
    for (const std::size_t bytes : {0, 1, 31, 32, 39, 41, 47})
        CHECK_FALSE(barrier_page::fits(bytes));
    CHECK(barrier_page::fits(40));
    CHECK(barrier_page::fits(barrier_page::bytes_for(barrier_page::most_parties)));
    CHECK_FALSE(barrier_page::fits(barrier_page::bytes_for(barrier_page::most_parties + 1)));
}

TEST_CASE("barrier page: nonsense in the memory keeps nobody, and is put into words") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 2'000; ++round) {
        memory m(5);
        std::ranges::generate(m.words, std::ref(random));
        std::uint32_t phase = 0;
        const int index = static_cast<int>(random() % 8) - 1;
        (void)m.page.arrive(index, phase);
        const timespec past{};
        (void)m.page.wait(phase, &past);
        (void)m.page.withdraw(index, phase);
        (void)m.page.drop(index, 1);
        (void)m.page.take_drop(1);
        m.page.break_by(ended(1, exit_status::from_code(1)));
        CHECK(m.page.now().broken);
        CHECK(m.page.reason().size() < 200);
    }
}

}  // namespace barrier_page_test
