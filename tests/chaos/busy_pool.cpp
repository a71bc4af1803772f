// SPDX-License-Identifier: BSL-1.0
#include "busy_pool.hpp"

#include "behave.hpp"
#include "host.hpp"
#include "reports.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <system_error>

#include <unistd.h>

namespace chaos {

namespace {

using std::chrono::milliseconds;

void report_begin() { report_role(again); }

int next_of(int number) { return number + 1; }

int behave_in_call(int does, int extra) {
    start_extra_process(static_cast<extra_process>(extra));
    behave(static_cast<behaviour>(does));
    return extra;
}

cohort::pool_options options_of(random_numbers& random) {
    const int size = 1 + random.below(3);
    cohort::pool_options how(size);
    how.at_least(random.below(size + 1)).idle(milliseconds(random.below(50)));
    how.start_attempts(1'000'000);  // each of its workers may be killed
    how.initializer(cohort::task<report_begin>()).fd(role_pipe_number, role_pipe_number);
    how.grace_period(milliseconds(50 + random.below(250)));
    auto method = static_cast<cohort::start_method>(random.below(3));
    if (!cohort::test::groups_in_copies && method == cohort::start_method::fork)
        method = cohort::start_method::spawn;
    how.start_method(method);
    if (random.chance(50))
        how.tasks_per_worker(1 + random.below(20));
    if (random.chance(30))
        how.stderr_to(cohort::capture());
    return how;
}

extra_process extra_of(random_numbers& random, limits allowed) {
    const auto extra = static_cast<extra_process>(random.below(6));
    const bool may = extra == extra_process::daemon ? allowed.daemons : allowed.children;
    return may ? extra : extra_process::none;
}

}  // namespace

asio::awaitable<void> busy_pool::start(std::uint64_t seed, limits allowed) {
    allowed_ = allowed;
    random_.emplace(seed);
    const auto executor = co_await asio::this_coro::executor;
    all_have_ended_.emplace(executor, asio::steady_timer::time_point::max());
    pool_ = co_await cohort::start_pool(options_of(*random_));
    callers_ = 1 + random_->below(6);
    for (int left = callers_; left > 0; --left)
        asio::co_spawn(executor, call_in_turn(), [this](std::exception_ptr error) {
            if (error)
                tell_broken("a caller has failed");
            if (--callers_ == 0)
                all_have_ended_->cancel();
        });
}

asio::awaitable<void> busy_pool::stop() {
    if (!random_)
        co_return;
    ends_ = true;
    co_await pool_.stop();
    const auto left = pool_.stats();
    if (left.size != 0 || left.waiting != 0)
        tell_broken(fmt::format("a stopped pool has {} workers, and {} calls wait", left.size,
                                left.waiting));
    asio::error_code cancelled;
    while (callers_ > 0)
        co_await all_have_ended_->async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    pool_ = {};
}

asio::awaitable<void> busy_pool::call_in_turn() {
    while (!ends_) {
        try {
            co_await call_once();
        } catch (const cohort::process_raised_exception&) {
        } catch (const cohort::process_exited_exception&) {
        } catch (const cohort::task_timeout&) {
        } catch (const cohort::pool_broken&) {  // the fork server was killed
        } catch (const std::system_error& error) {
            if (error.code() != asio::error::operation_aborted)
                tell_broken(fmt::format("a call has ended so: {}", error.what()));
            else if (!ends_)
                tell_broken("a call was aborted that nobody has cancelled");
        }
    }
}

asio::awaitable<void> busy_pool::call_once() {
    if (random_->chance(90)) {
        const int number = random_->below(1000);
        if (co_await pool_.submit(cohort::task<next_of>(number)) != number + 1)
            tell_broken("a call has got the value of another");
        co_return;
    }
    const auto does = static_cast<int>(random_->below(6));
    const auto extra = static_cast<int>(extra_of(*random_, allowed_));
    const auto limits = cohort::call_limits().run(milliseconds(1 + random_->below(100)));
    if (co_await pool_.submit(cohort::task<behave_in_call>(does, extra), limits) != extra)
        tell_broken("a call has got the value of another");
}

}  // namespace chaos
