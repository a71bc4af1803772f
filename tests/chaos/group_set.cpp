// SPDX-License-Identifier: BSL-1.0
#include "group_set.hpp"

#include "descriptors.hpp"
#include "workers.hpp"

#include <cohort/errors.hpp>

#include <asio.hpp>

#include <exception>
#include <utility>

namespace chaos {

asio::awaitable<void> group_set::run(std::uint64_t seed, int levels, limits allowed) {
    const auto before = group_descriptors();
    if (has_pool(seed))
        co_await pool_.start(seed, allowed);
    for (const auto& plan : groups_of(seed, levels, allowed)) {
        try {
            auto group = co_await start_group(plan, levels, allowed);
            groups_.push_back({plan, std::move(group), {}});
        } catch (const cohort::group_timed_out&) {  // before its workers had started
            failed_ = true;
            stopping_ = true;
        }
        if (stopping_)
            stop();
    }
    co_await await_all();
    co_await pool_.stop();
    for (auto& [plan, group, told] : groups_)
        co_await check_reports(plan, group, told);
    groups_.clear();
    co_await check_descriptors(before);
}

asio::awaitable<void> group_set::await_all() {
    if (groups_.empty())
        co_return;
    asio::steady_timer all_ended(co_await asio::this_coro::executor,
                                 asio::steady_timer::time_point::max());
    auto left = groups_.size();
    const auto one_has_ended = [&] {
        if (--left == 0)
            all_ended.cancel();
    };
    for (auto& [plan, group, told] : groups_) {
        group.async_wait([&](std::exception_ptr error, const cohort::report& report) {
            if (error || !report.success()) {
                failed_ = true;
                stop();
            }
            one_has_ended();
        });
        if (!plan.is_watched)
            continue;
        ++left;
        asio::co_spawn(all_ended.get_executor(), take_ends(plan, group, told),
                       [&](std::exception_ptr error) {
                           if (error)
                               tell_broken("next has failed");
                           one_has_ended();
                       });
    }
    asio::error_code cancelled;
    co_await all_ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

void group_set::drop() {
    groups_.clear();
    pool_.drop();
}

void group_set::stop() {
    stopping_ = true;
    for (std::size_t i = 0; i < groups_.size(); ++i)
        stop(i);
}

void group_set::stop(std::size_t which) {
    auto& group = groups_[which].group;
    group.request_stop();
    // Asked after the stop, so answered when the library knows of it.
    group.async_usage([this, which](std::exception_ptr, const auto&) {
        if (which < groups_.size())
            groups_[which].told.note_stop();
    });
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
