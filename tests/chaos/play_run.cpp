// SPDX-License-Identifier: BSL-1.0
#include "play_run.hpp"

#include "guard.hpp"
#include "play_outcomes.hpp"
#include "play_work.hpp"
#include "reports.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <utility>
#include <vector>

namespace chaos {

namespace {

using namespace std::chrono_literals;

/// Plays that would have no end are stopped then.
constexpr auto longest_play = 400ms;
/// Far more than any play needs: a longer one hangs.
constexpr auto hang_bound = 60s;

/// One play while it runs.
class course {
public:
    course(const play& plan, std::string logs) : plan_(plan), logs_(std::move(logs)) {}

    /// @return what is wrong; empty: nothing
    std::string run() {
        asio::co_spawn(
            io_, act(),
            asio::bind_cancellation_slot(cancel_.slot(), [this](std::exception_ptr error) {
                thrown_ = std::move(error);
                end_of_time_.cancel();
                cancel_time_.cancel();
                // Cancelled just when the start had given the group.
                if (was_stopped_ && group_.valid())
                    group_.request_stop();
            }));
        end_of_time_.expires_after(longest_play);
        end_of_time_.async_wait([this](asio::error_code error) {
            if (!error)
                end_at_last();
        });
        if (plan_.by == finish::cancel) {
            cancel_time_.expires_after(std::chrono::microseconds(plan_.after_us));
            cancel_time_.async_wait([this](asio::error_code error) {
                if (!error)
                    cancel();
            });
        }
        run_all();
        if (wrong_.empty())
            wrong_ = wrong_failure(plan_, thrown_, was_stopped_);
        if (!wrong_.empty() || !group_.valid())
            return wrong_;
        asio::co_spawn(io_, look_back(), [this](std::exception_ptr error) {
            if (error)
                wrong_ = "a group that has ended can't be asked: " +
                         wrong_failure(plan_, std::move(error), false);
        });
        run_all();
        return wrong_;
    }

    /// Those of a group that was not dropped.
    const std::vector<cohort::outcome>& last() const { return last_; }

private:
    asio::awaitable<void> act() {
        group_ = co_await start_play(plan_, logs_);
        if (plan_.group.is_watched)
            asio::co_spawn(io_, take_ends(plan_.group, group_, told_),
                           [this](std::exception_ptr error) {
                               if (error)
                                   wrong_ = "next has failed";
                           });
        switch (plan_.by) {
        case finish::stop:
            co_await pass();
            co_await stop();
            break;
        case finish::drop:
            co_await pass();
            group_ = cohort::group();
            break;
        case finish::cancel:
        case finish::join:
            expect_success(co_await group_.join());
            break;
        case finish::join_for:
            if (co_await group_.join(std::chrono::microseconds(plan_.after_us)))
                expect_success(true);
            else
                co_await stop();
            break;
        case finish::wait:
            expect_end((co_await group_.wait()).outcomes.size());
            break;
        case finish::next:
            co_await take_ends(plan_.group, group_, told_);
            break;
        }
    }

    asio::awaitable<void> pass() {
        asio::steady_timer timer(io_, std::chrono::microseconds(plan_.after_us));
        co_await timer.async_wait(asio::use_awaitable);
    }

    asio::awaitable<void> stop() {
        was_stopped_ = true;
        group_.request_stop();
        (void)co_await group_.usage();  // answered after the stop has begun
        told_.note_stop();
        expect_end((co_await group_.stop()).outcomes.size());
    }

    void cancel() {
        was_stopped_ = true;
        cancel_.emit(asio::cancellation_type::terminal);
    }

    void end_at_last() {
        if (!group_.valid())
            return cancel();
        was_stopped_ = true;
        group_.request_stop();
    }

    void expect_end(std::size_t outcomes) {
        if (outcomes != static_cast<std::size_t>(plan_.group.size))
            wrong_ = fmt::format("the report has {} outcomes", outcomes);
    }

    void expect_success(bool joined) {
        for (const auto& one : group_.outcomes())
            if (!joined || !one.success())
                wrong_ = "join has hidden a failure";
        expect_end(group_.outcomes().size());
    }

    asio::awaitable<void> look_back() {
        auto report = co_await group_.stop();
        co_await take_ends(plan_.group, group_, told_);
        wrong_ = wrong_reports(plan_.group, group_, report.outcomes, told_);
        if (wrong_.empty())
            wrong_ = wrong_outcomes(plan_, report.outcomes, was_stopped_);
        last_ = std::move(report.outcomes);
    }

    void run_all() {
        io_.restart();
        io_.run_for(hang_bound);
        if (!io_.stopped())
            wrong_ = "it hangs";
    }

    const play& plan_;
    const std::string logs_;
    asio::io_context io_;
    asio::steady_timer end_of_time_{io_};
    asio::steady_timer cancel_time_{io_};
    asio::cancellation_signal cancel_;
    cohort::group group_;
    told_ends told_;
    bool was_stopped_ = false;  // by this program
    std::exception_ptr thrown_;
    std::string wrong_;
    std::vector<cohort::outcome> last_;
};

}  // namespace

std::string play_runner::run(const play& plan) {
    const auto logs = logs_.file(std::to_string(++last_));
    std::filesystem::create_directory(logs);
    cohort::test::leak_guard guard;
    std::string wrong;
    {
        course now(plan, logs);
        wrong = now.run();
        for (const auto& worker : now.last()) {
            for (const auto& one : worker.history)
                counts_[to_string(one.cause)] += one.restarted ? 1 : 0;
            ++counts_[to_string(worker.cause)];
        }
    }
    if (wrong.empty())
        wrong = guard.leftovers(hang_bound);
    guard.dismiss();
    return wrong;
}

std::string play_runner::statistics() const {
    std::string text;
    for (const auto& [how, count] : counts_)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", how, count);
    return text;
}

}  // namespace chaos
