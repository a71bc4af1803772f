// SPDX-License-Identifier: BSL-1.0
#include "group_set.hpp"

#include "descriptors.hpp"
#include "reports.hpp"
#include "workers.hpp"

#include <cohort/errors.hpp>

#include <asio.hpp>

#include <exception>
#include <utility>

namespace chaos {

asio::awaitable<void> group_set::run(std::uint64_t seed, int levels, limits allowed) {
    const auto before = group_descriptors();
    std::vector<group_plan> started;
    for (const auto& plan : groups_of(seed, levels, allowed)) {
        try {
            auto group = co_await start_group(plan, levels, allowed);
            groups_.push_back(std::move(group));
            started.push_back(plan);
        } catch (const cohort::group_timed_out&) {  // before its workers had started
            failed_ = true;
            stopping_ = true;
        }
        if (stopping_)
            stop();
    }
    co_await await_all();
    for (std::size_t i = 0; i < started.size(); ++i)
        co_await check_reports(started[i], groups_[i]);
    groups_.clear();
    co_await check_descriptors(before);
}

asio::awaitable<void> group_set::await_all() {
    if (groups_.empty())
        co_return;
    asio::steady_timer all_ended(co_await asio::this_coro::executor,
                                 asio::steady_timer::time_point::max());
    auto left = groups_.size();
    for (auto& group : groups_)
        group.async_wait([&](std::exception_ptr error, const cohort::report& report) {
            if (error || !report.success()) {
                failed_ = true;
                stop();
            }
            if (--left == 0)
                all_ended.cancel();
        });
    asio::error_code cancelled;
    co_await all_ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

void group_set::stop() {
    stopping_ = true;
    for (auto& group : groups_)
        group.request_stop();
}

void run_groups(asio::io_context& context, group_set& groups, std::uint64_t seed, int levels,
                limits allowed) {
    std::exception_ptr failure;
    asio::co_spawn(context, groups.run(seed, levels, allowed), [&](std::exception_ptr error) {
        failure = std::move(error);
        context.stop();
    });
    context.run();
    if (failure)
        std::rethrow_exception(failure);
}

}  // namespace chaos
