// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "landing.hpp"

#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace cohort::test {

/// Every operation, its result or its error, in one way: with one completion token.
/// Way::get<T>(host, op) initiates op(token), and returns the result or throws the error.
template <class Way>
class life {
public:
    explicit life(host& on) : on_(on) {}

    void all_end_well() {
        auto group = spawn(cohort::command("true"), 2);
        CHECK(group.size() == 2);
        CHECK(join(group));
        CHECK(join(group, std::chrono::hours(1)));
        CHECK(wait(group).success());
        CHECK(next(group)->status.success());
        CHECK(next(group)->status.success());
        CHECK(next(group).ended());
        CHECK(next(group, std::chrono::hours(1)).ended());
        CHECK(stop(group).success());
    }

    void one_fails() {
        auto group = spawn(cohort::command("sh", "-c", "exit 3"), 1);
        CHECK_THROWS_AS(join(group), cohort::process_exited_exception);
        CHECK(wait(group).outcomes.at(0).status.exit_code() == 3);
    }

    void one_is_stopped() {
        auto group = spawn(cohort::command("sleep", 1000), 1);
        CHECK_FALSE(join(group, std::chrono::milliseconds(1)));
        CHECK(next(group, std::chrono::milliseconds(1)).timed_out());
        CHECK(stop(group).outcomes.at(0).status.signal() == SIGTERM);
        CHECK_THROWS_AS(join(group), cohort::group_stopped);
    }

    void none_starts() {
        CHECK_THROWS_AS((void)spawn(cohort::command("/no/such/program"), 1), cohort::spawn_error);
    }

private:
    cohort::group spawn(cohort::command work, int count) {
        return get<cohort::group>([&](auto&& token) {
            return cohort::async_spawn(on_.executor(), work, cohort::options(count),
                                       std::forward<decltype(token)>(token));
        });
    }
    bool join(cohort::group& group) {
        return get<bool>(
            [&](auto&& token) { return group.async_join(std::forward<decltype(token)>(token)); });
    }
    template <class Duration>
    bool join(cohort::group& group, Duration timeout) {
        return get<bool>([&](auto&& token) {
            return group.async_join(timeout, std::forward<decltype(token)>(token));
        });
    }
    cohort::report wait(cohort::group& group) {
        return get<cohort::report>(
            [&](auto&& token) { return group.async_wait(std::forward<decltype(token)>(token)); });
    }
    cohort::received<cohort::outcome> next(cohort::group& group) {
        return get<cohort::received<cohort::outcome>>(
            [&](auto&& token) { return group.async_next(std::forward<decltype(token)>(token)); });
    }
    template <class Duration>
    cohort::received<cohort::outcome> next(cohort::group& group, Duration timeout) {
        return get<cohort::received<cohort::outcome>>([&](auto&& token) {
            return group.async_next(timeout, std::forward<decltype(token)>(token));
        });
    }
    cohort::report stop(cohort::group& group) {
        return get<cohort::report>(
            [&](auto&& token) { return group.async_stop(std::forward<decltype(token)>(token)); });
    }

    template <class T, class Op>
    T get(Op op) {
        return Way::template get<T>(on_, op);
    }

    host& on_;
};

template <class Way>
void whole_life(host& on) {
    life<Way> lived(on);
    lived.all_end_well();
    lived.one_fails();
    lived.one_is_stopped();
    lived.none_starts();
}

}  // namespace cohort::test
