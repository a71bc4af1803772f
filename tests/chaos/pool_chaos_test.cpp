// SPDX-License-Identifier: BSL-1.0
// Plays pools with random options: calls of every kind, deadlines, cancellations, kills of workers,
// recycling and resizing under load, every way to end. Each call must end once, in a way that it
// can, and nothing be left. COHORT_CHAOS_SEED and COHORT_CHAOS_ROUNDS as for the other chaos tests.
#include "asked_seed.hpp"
#include "guard.hpp"
#include "plan.hpp"
#include "pool_support.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

namespace pool_chaos_test {

using namespace std::chrono_literals;
using cohort::task;

namespace {

enum class kind { add, echo, sleep, raise, die };

int add(int a, int b) { return a + b; }
std::string echo(const std::string& text) { return text; }
int sleep_for(int microseconds) {
    ::usleep(static_cast<useconds_t>(microseconds));
    return microseconds;
}
int raise(int number) { throw std::out_of_range(std::to_string(number)); }
int die(int how) {
    constexpr std::array signals{SIGSEGV, SIGKILL, SIGABRT};
    if (how == 0)
        std::exit(3);
    ::raise(signals.at(static_cast<std::size_t>(how) - 1));
    return how;
}
void begin() {}

/// One pool's life. Runs on one thread.
class pool_play {
public:
    explicit pool_play(std::uint64_t seed) : random_(static_cast<std::uint32_t>(seed)) {}

    asio::awaitable<void> run();
    /// What is wrong; empty: nothing.
    std::string wrong() const {
        return pending_ > 0 ? fmt::format("{} calls have not ended", pending_) : wrong_;
    }
    const std::map<std::string, int>& ends() const { return ends_; }

private:
    int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    cohort::pool_options options();
    void call(cohort::pool& pool, asio::any_io_executor on, int number);
    void disturb(cohort::pool& pool);
    asio::awaitable<void> end(cohort::pool pool);
    template <class T>
    auto check(kind what, std::shared_ptr<asio::cancellation_signal> by, T wanted);
    void note(kind what, std::exception_ptr error, bool is_right);
    void fail(std::string why) {
        if (wrong_.empty())
            wrong_ = std::move(why);
    }

    std::minstd_rand random_;
    int pending_ = 0;
    bool kills_ = false;
    std::string wrong_;
    std::map<std::string, int> ends_;
};

cohort::pool_options pool_play::options() {
    const int size = 1 + pick(4);
    cohort::pool_options how(size);
    how.at_least(pick(size + 1)).idle(std::chrono::milliseconds(pick(50)));
    how.start_attempts(1'000'000).starts_at_once(1 + pick(3)).overlap(pick(3) != 0);
    if (pick(6) == 0 && cohort::test::groups_in_copies)  // see there: this program has threads
        how.start_method(cohort::start_method::fork);
    if (pick(6) == 0)
        how.start_method(cohort::start_method::spawn);
    if (pick(2) == 0)
        how.tasks_per_worker(1 + pick(20));
    if (pick(3) == 0)
        how.memory_per_worker(1 + pick(1'000'000));
    if (pick(3) == 0)
        how.queue(1 + pick(10));
    if (pick(2) == 0)
        how.initializer(task<begin>());
    if (pick(4) == 0)
        how.stderr_to(cohort::capture());
    if (pick(4) == 0)
        how.stack_on_stop(true);
    if (pick(3) == 0)
        how.drain_period(std::chrono::milliseconds(pick(30)));
    kills_ = pick(3) == 0;
    return how;
}

template <class T>
auto pool_play::check(kind what, std::shared_ptr<asio::cancellation_signal> by, T wanted) {
    ++pending_;
    const auto slot = by->slot();
    return asio::bind_cancellation_slot(
        slot, [this, what, by = std::move(by), wanted = std::move(wanted)](std::exception_ptr error,
                                                                           const T& value) {
            --pending_;
            note(what, std::move(error), value == wanted);
        });
}

void pool_play::note(kind what, std::exception_ptr error, bool is_right) {
    std::string how = "returned";
    bool can_be = what != kind::raise && what != kind::die && is_right;
    try {
        if (error)
            std::rethrow_exception(error);
    } catch (const cohort::process_raised_exception& e) {
        how = "raised";
        can_be = what == kind::raise && e.error().type == "std::out_of_range";
    } catch (const cohort::process_exited_exception&) {
        how = "died";
        can_be = what == kind::die || kills_;
    } catch (const cohort::task_timeout&) {
        how = "ran too long";
        can_be = true;
    } catch (const cohort::queue_timeout&) {
        how = "waited too long";
        can_be = true;
    } catch (const std::system_error& e) {
        how = e.code() == asio::error::operation_aborted ? "aborted" : e.what();
        can_be = e.code() == asio::error::operation_aborted;
    } catch (const std::exception& e) {
        how = e.what();
        can_be = false;
    }
    ++ends_[how];
    if (!can_be)
        fail(fmt::format("a call of kind {} has ended so: {}", static_cast<int>(what), how));
}

void pool_play::call(cohort::pool& pool, asio::any_io_executor on, int number) {
    cohort::call_limits limits;
    if (pick(4) == 0)
        limits.wait(std::chrono::milliseconds(pick(20)));
    if (pick(8) == 0)
        limits.run(std::chrono::microseconds(1 + pick(3000)));
    auto by = std::make_shared<asio::cancellation_signal>();
    switch (pick(10)) {
    case 0:
        pool.async_submit(task<raise>(number), limits, check(kind::raise, by, 0));
        break;
    case 1:
        pool.async_submit(task<die>(pick(4)), limits, check(kind::die, by, 0));
        break;
    case 2:
    case 3: {
        const int time = pick(3000);
        pool.async_submit(task<sleep_for>(time), limits, check(kind::sleep, by, time));
        break;
    }
    case 4: {
        const std::string text(static_cast<std::size_t>(pick(pick(10) == 0 ? 300'000 : 100)), 'y');
        pool.async_submit(task<echo>(text), limits, check(kind::echo, by, text));
        break;
    }
    default:
        pool.async_submit(task<add>(number, 1), limits, check(kind::add, by, number + 1));
    }
    if (pick(6) != 0)
        return;
    constexpr std::array types{asio::cancellation_type::total, asio::cancellation_type::partial,
                               asio::cancellation_type::terminal};
    const auto when =
        std::make_shared<asio::steady_timer>(on, std::chrono::microseconds(pick(5000)));
    when->async_wait(
        [when, by, type = types.at(static_cast<std::size_t>(pick(3)))](auto) { by->emit(type); });
}

void pool_play::disturb(cohort::pool& pool) {
    if (kills_ && pick(20) == 0)
        for (const auto& worker : pool.workers())
            // Not one that stops, because it may have been reaped by now.
            if (worker.pid > 0 && worker.state != cohort::worker_state::stopping && pick(2) == 0)
                ::kill(worker.pid, SIGKILL);
    if (pick(50) == 0)
        pool.async_recycle([](std::exception_ptr) {});
    if (pick(50) == 0)
        pool.async_resize(1 + pick(5), [](std::exception_ptr) {});
    if (pool.stats().size > 6)
        fail("there are more workers than may be");
}

asio::awaitable<void> pool_play::end(cohort::pool pool) {
    switch (pick(4)) {
    case 0:
        co_return;  // dropped
    case 1:
        co_await pool.drain();
        break;
    case 2:
        if (co_await pool.drain(std::chrono::milliseconds(pick(20))))
            break;
        [[fallthrough]];
    default:
        co_await pool.stop();
    }
    const auto left = pool.stats();
    if (left.size != 0 || left.idle != 0 || left.waiting != 0)
        fail(fmt::format("at the end there are {} workers, and {} calls wait", left.size,
                         left.waiting));
}

asio::awaitable<void> pool_play::run() {
    const auto executor = co_await asio::this_coro::executor;
    auto pool = co_await cohort::start_pool(options());
    asio::steady_timer pause(executor);
    const int calls = 1 + pick(200);
    for (int i = 0; i < calls; ++i) {
        call(pool, executor, i);
        disturb(pool);
        if (pick(10) == 0) {
            pause.expires_after(std::chrono::microseconds(pick(2000)));
            co_await pause.async_wait(asio::use_awaitable);
        }
    }
    co_await end(std::move(pool));
}

}  // namespace

TEST_CASE("pool chaos: calls of pools with any options end as they should, and nothing is left") {
    { const cohort::test::leak_guard first_of_all; }  // makes what stays for ever
    chaos::run_out(chaos::start_server());
    const cohort::test::leak_guard guard;
    const auto [seed, first] = chaos::asked_seed();
    const int count = chaos::asked_count(60, 3000, 600);
    fmt::print("[pools] seed {}, {} plays\n", seed, count);
    std::fflush(stdout);
    std::map<std::string, int> ends;
    for (int at = first; at < first + count; ++at) {
        pool_play play(chaos::derived_seed(seed, at));
        INFO("play ", at, " of COHORT_CHAOS_SEED=", seed, ":", at);
        chaos::run_out(play.run());
        REQUIRE(play.wrong() == "");
        for (const auto& [how, times] : play.ends())
            ends[how] += times;
    }
    for (const auto& [how, times] : ends)
        fmt::print("[pools] {}: {}\n", how, times);
}

}  // namespace pool_chaos_test
