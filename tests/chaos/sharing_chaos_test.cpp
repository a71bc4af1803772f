// SPDX-License-Identifier: BSL-1.0
// Kills and stops processes that share queues, barriers, mutexes and named arrays, at any moment.
// No value may be torn, doubled or lost but those that a killed reader had, and nobody may wait for
// ever. COHORT_CHAOS_SEED and COHORT_CHAOS_ROUNDS as for the other chaos test.
#include "plan.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace sharing_chaos_test {

using namespace std::chrono_literals;
using chaos::random_numbers;

struct small_value {
    std::uint32_t producer = 0;
    std::uint32_t number = 0;
    std::array<std::uint64_t, 7> copies{};

    static small_value made(std::uint32_t producer, std::uint32_t number) {
        small_value value{producer, number, {}};
        value.copies.fill((std::uint64_t{producer} << 32) | number);
        return value;
    }
    bool is_whole() const {
        return std::ranges::all_of(copies, [this](std::uint64_t copy) {
            return copy == ((std::uint64_t{producer} << 32) | number);
        });
    }
};

}  // namespace sharing_chaos_test

template <>
inline constexpr bool cohort::plain<sharing_chaos_test::small_value> = true;

namespace sharing_chaos_test {
namespace {

constexpr std::uint32_t most_producers = 16;
constexpr std::uint32_t most_values = 20'000;  // of one producer
constexpr auto hang = 60s;

using counts = cohort::shared_array<std::atomic<std::uint32_t>>;

void produce(int, std::uint32_t producer, cohort::queue_writer<small_value> to,
             const cohort::event& stop, const counts& put) {
    for (std::uint32_t i = 0; i < most_values && !stop.is_set(); put(producer) = ++i)
        to.put(small_value::made(producer, i));
}

void consume(int, cohort::queue_reader<small_value> from, const counts& seen) {
    std::array<std::int64_t, most_producers> last;
    last.fill(-1);
    for (const small_value& value : from) {
        if (!value.is_whole() || value.producer >= most_producers || value.number >= most_values)
            throw std::runtime_error("a value is torn");
        if (std::exchange(last[value.producer], value.number) >= value.number)
            throw std::runtime_error("a producer's values came in another order");
        if (seen(value.producer, value.number)++ != 0)
            throw std::runtime_error("a value came twice");
    }
}

struct member {
    cohort::group group;
    bool is_killed = false;
};

cohort::options patient(random_numbers& random) {
    const std::array methods{cohort::start_method::spawn, cohort::start_method::fork,
                             cohort::start_method::forkserver};
    return cohort::options(1)
        .start_method(methods[static_cast<std::size_t>(random.below(3))])
        .on_failure(cohort::on_failure::keep_going);
}

asio::awaitable<void> pause_up_to(std::chrono::microseconds longest, random_numbers& random) {
    asio::steady_timer timer(co_await asio::this_coro::executor,
                             std::chrono::microseconds(random.below(int(longest.count()))));
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<cohort::report> end_of(cohort::group& group) {
    try {
        const bool has_ended = co_await group.join(hang);
        REQUIRE_MESSAGE(has_ended, "a worker waits for ever");
    } catch (const cohort::process_exception&) {  // as planned
    }
    co_return co_await group.wait();
}

/// Waits for the end of a worker, which must be a success unless it was killed.
asio::awaitable<void> expect_end(member& one) {
    const auto told = co_await end_of(one.group);
    if (!one.is_killed)
        CHECK_MESSAGE(told.success(), fmt::format("{}", told));
}

class queue_round {
public:
    explicit queue_round(std::uint64_t seed)
        : random_(seed), capacity_(std::array{0, 1, 8, 100}[std::size_t(random_.below(4))]),
          queue_(capacity_ == 0 ? cohort::queue<small_value>()
                                : cohort::queue<small_value>(std::size_t(capacity_))),
          put_(most_producers), seen_(most_producers, most_values) {}

    asio::awaitable<void> run() {
        for (int i = 0; i < 3; ++i) {
            co_await start_producer();
            co_await start_consumer();
        }
        for (int i = 0; i < 6; ++i) {
            co_await pause_up_to(4'000us, random_);
            if (random_.chance(50))
                co_await harm(producers_, &queue_round::start_producer);
            else
                co_await harm(consumers_, &queue_round::start_consumer);
        }
        stop_.set();
        queue_.close();
        for (auto& producer : producers_)
            co_await expect_end(producer);
        for (auto& consumer : consumers_)
            co_await expect_end(consumer);
        count();
    }

private:
    asio::awaitable<void> start_producer() {
        const auto number = static_cast<std::uint32_t>(producers_.size());
        auto group = co_await cohort::spawn(
            cohort::function<produce>(number, queue_.writer(), stop_, put_), patient(random_));
        producers_.push_back(member{std::move(group)});
    }
    asio::awaitable<void> start_consumer() {
        auto group = co_await cohort::spawn(cohort::function<consume>(queue_.reader(), seen_),
                                            patient(random_));
        consumers_.push_back(member{std::move(group)});
    }

    /// Kills one of them, now or after a time in which it is stopped, and starts another one.
    asio::awaitable<void> harm(std::vector<member>& members,
                               asio::awaitable<void> (queue_round::*start)()) {
        const auto which = static_cast<std::size_t>(random_.below(int(members.size())));
        auto& group = members[which].group;
        if (random_.chance(30)) {
            group.signal(SIGSTOP);
            co_await pause_up_to(4'000us, random_);
        }
        if (random_.chance(70)) {
            killed_readers_ += &members == &consumers_ && !members[which].is_killed ? 1 : 0;
            members[which].is_killed = true;
            group.signal(SIGKILL);
            co_await (this->*start)();
        } else {
            group.signal(SIGCONT);
        }
    }

    void count() {
        std::uint32_t lost = 0;
        for (std::uint32_t producer = 0; producer < producers_.size(); ++producer)
            for (std::uint32_t i = 0; i < put_(producer); ++i)
                lost += seen_(producer, i) == 0 ? 1 : 0;
        CHECK(lost <= killed_readers_);
    }

    random_numbers random_;
    int capacity_;
    cohort::queue<small_value> queue_;
    cohort::event stop_;
    counts put_;
    counts seen_;
    std::vector<member> producers_;
    std::vector<member> consumers_;
    std::uint32_t killed_readers_ = 0;
};

// --- barriers and mutexes ---

struct pair_of_counters {
    long first = 0;
    long second = 0;
};
using counters = cohort::shared_value<pair_of_counters>;

/// Adds to both counters, or repairs what a killed owner has left half done.
void add_to_both(const cohort::mutex& guard, const counters& both) {
    const cohort::mutex_lock held(guard);
    if (held.owner_died())
        both->second = both->first;
    if (both->first != both->second)
        throw std::runtime_error("two had the mutex, or one was not told of its owner's end");
    ++both->first;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++both->second;
}

/// @return the index of the worker that has broken the barrier
int meet_for_ever(int, const cohort::barrier& all, const cohort::mutex& guard,
                  const counters& both) {
    try {
        for (;;) {
            add_to_both(guard, both);
            all.arrive_and_wait();
        }
    } catch (const cohort::broken_barrier& broken) {
        return broken.index();
    }
}

asio::awaitable<void> barrier_round(std::uint64_t seed) {
    random_numbers random(seed);
    constexpr int workers = 4;
    const cohort::barrier all(workers);
    const cohort::mutex guard;
    const counters both;
    auto group = co_await cohort::spawn(cohort::function<meet_for_ever>(all, guard, both),
                                        patient(random).nprocs(workers));
    co_await pause_up_to(20'000us, random);
    const int victim = random.below(workers);
    REQUIRE(group.alive() == workers);
    group.signal(victim, SIGKILL);
    const auto told = co_await end_of(group);
    for (const auto& outcome : told.outcomes) {
        CHECK((outcome.index == victim) == (outcome.status.signal() == SIGKILL));
        if (outcome.index != victim)
            CHECK(outcome.result<int>() == victim);  // throws if it has none
    }
    add_to_both(guard, both);
}

// --- names ---

void make_names(int, const cohort::queue<cohort::shared_array<int>>& arrays) {
    cohort::queue both(arrays);
    both.keep_both_ends();
    for (int i = 0;; ++i) {
        cohort::shared_array<int> made(100);
        made(0) = i;
        (void)both.try_put(made);
        if (const auto other = both.try_get(); other && (*other)(99) != 0)
            throw std::runtime_error("an array has other elements");
    }
}

/// The names that this program and its workers have drawn.
std::set<std::string> own_names() {
    const auto own = cohort::shared_array<int>(1).name();  // cohort.<user>.<session>.<pid>.<number>
    const auto prefix = own.substr(0, own.rfind('.', own.rfind('.') - 1) + 1);
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
        if (const auto name = entry.path().filename().string(); name.starts_with(prefix))
            found.insert(name);
    return found;
}

asio::awaitable<void> names_round(std::uint64_t seed) {
    random_numbers random(seed);
    const auto before = own_names();
    {
        cohort::queue<cohort::shared_array<int>> arrays;
        auto group =
            co_await cohort::spawn(cohort::function<make_names>(arrays), patient(random).nprocs(3));
        co_await pause_up_to(20'000us, random);
        group.signal(SIGKILL);
        const auto told = co_await end_of(group);
        for (const auto& outcome : told.outcomes)
            CHECK_MESSAGE(outcome.status.signal() == SIGKILL, fmt::format("{}", told));
    }
    // Those that were in the queue go with the last descriptor of its sockets: no event.
    const auto deadline = std::chrono::steady_clock::now() + hang;
    while (own_names() != before && std::chrono::steady_clock::now() < deadline)
        (void)cohort::sweep_shared_memory();
    CHECK(own_names() == before);
}

std::string environment(const char* name) {
    return std::getenv(name) == nullptr ? "" : std::getenv(name);
}

/// Runs rounds, each with a seed of its own.
void run_rounds(const char* what,
                const std::function<asio::awaitable<void>(std::uint64_t)>& round) {
    const auto asked = environment("COHORT_CHAOS_ROUNDS");
    const bool is_long = !environment("COHORT_TEST_LONG").empty();
    const int count = asked.empty() ? (is_long ? 200 : 5) : std::stoi(asked);
    const auto given = environment("COHORT_CHAOS_SEED");
    const auto seed = given.empty() ? std::random_device()() : std::stoull(given);
    fmt::print("[{}] seed {}, {} rounds\n", what, seed, count);
    std::fflush(stdout);
    for (int i = 0; i < count; ++i) {
        CAPTURE(seed);
        CAPTURE(i);
        asio::io_context context;
        std::exception_ptr error;
        asio::co_spawn(context, round(chaos::derived_seed(seed, i)),
                       [&error](std::exception_ptr thrown) { error = thrown; });
        context.run();
        if (error)
            std::rethrow_exception(error);
    }
}

}  // namespace

TEST_CASE("sharing chaos: killed writers and readers tear, double and hold up nothing") {
    run_rounds("queues", [](std::uint64_t seed) -> asio::awaitable<void> {
        auto round = std::make_shared<queue_round>(seed);
        co_await round->run();
    });
}

TEST_CASE("sharing chaos: a killed party breaks its barrier and gives its mutex on") {
    run_rounds("barriers", &barrier_round);
}

TEST_CASE("sharing chaos: no name is left of killed workers") {
    if (cohort::get_all_sharing_strategies().size() < 2)
        return;
    cohort::set_sharing_strategy(cohort::sharing_strategy::file_system);
    run_rounds("names", &names_round);
    cohort::set_sharing_strategy(cohort::sharing_strategy::file_descriptor);
}

}  // namespace sharing_chaos_test
