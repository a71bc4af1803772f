// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/order/caller.hpp"
#include "protocol/order/order_writer.hpp"

#include <cohort/detail/limits.hpp>
#include <cohort/detail/placement.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace cohort::protocol {

/// How a worker comes to be, as far as its limits depend on it.
struct limited_worker {
    bool is_copy = false;         // no program is executed that could get another argv[0]
    int record = -1;              // the number of its record there; -1: it has none
    std::vector<int> pipes = {};  // the streams that are pipes made for it
};

/// Adds the steps by which a child takes over what its caller has, and what the thread that makes
/// it does not have. They come before all others, because a child of the caller's own would have it
/// from its first moment on.
/// @param maker  that thread's state
void add_caller(order_writer& into, const caller& from, const thread_state& maker);

/// Adds the steps by which a child gives itself these limits.
void add_limits(order_writer& into, const detail::worker_limits& limits,
                const limited_worker& worker);

/// A rule of numbers.
struct within {
    int least;
    int most;
    void operator()(const char* setter, int value) const;
};

/// No rule: the value has several parts, which its setter checks. No step: the child does nothing.
struct none {};

/// A limit of workers.
/// @tparam Rule  called with (setter, value), throws std::invalid_argument; or none
/// @tparam Step  adds what the child does: called with (writer, setter, value) if the limit is set,
///               or always with (writer, all limits, worker); or none
template <class Value, class Rule, class Step = none>
struct limit_row {
    const char* setter;  // also the stage of spawn_error
    Value detail::worker_limits::*member;
    Rule rule;
    Step step = {};
};

// Clang 16 deduces no arguments of an aggregate without guides.
template <class Value, class Rule>
limit_row(const char*, Value detail::worker_limits::*, Rule) -> limit_row<Value, Rule>;
template <class Value, class Rule, class Step>
limit_row(const char*, Value detail::worker_limits::*, Rule, Step) -> limit_row<Value, Rule, Step>;

// Steps that are more than one call.
void add_io_priority(order_writer& into, const char* stage, const detail::io_priority_choice& to);
void add_batch_scheduling(order_writer& into, const char*, bool);
void add_resources(order_writer& into, const detail::worker_limits& limits, const limited_worker&);
void add_groups(order_writer& into, const detail::worker_limits& limits, const limited_worker&);
void add_user(order_writer& into, const detail::worker_limits& limits,
              const limited_worker& worker);
void add_no_new_privileges(order_writer& into, const char* stage, bool);
void add_name(order_writer& into, const detail::worker_limits& limits,
              const limited_worker& worker);

void require_name(const char* setter, const std::string& value);
void require_absolute(const char* setter, const std::string& value);

/// All limits, in the order of their steps. What needs a right comes before the step that gives the
/// right up. So the user comes last but for no_new_privs, which any user may set, and which takes
/// no right to become that user.
inline constexpr auto limit_rows = [] {
    using of = detail::worker_limits;
    return std::tuple(
        limit_row{"nice", &of::nice, within{-20, 19},
                  [](order_writer& into, const char* stage, int value) {
                      into.call(stage, fmt::format("setpriority({})", value), SYS_setpriority,
                                {PRIO_PROCESS, 0, value});
                  }},
        limit_row{"io_priority", &of::io_priority, none{}, &add_io_priority},
        limit_row{"batch_scheduling", &of::batch_scheduling, none{}, &add_batch_scheduling},
        limit_row{"timer_slack", &of::timer_slack, &detail::require_some,
                  [](order_writer& into, const char* stage, std::uint64_t value) {
                      into.call(stage, fmt::format("prctl(PR_SET_TIMERSLACK, {})", value),
                                SYS_prctl, {PR_SET_TIMERSLACK, static_cast<std::int64_t>(value)});
                  }},
        limit_row{"oom_score_adj", &of::oom_score_adj, within{-1000, 1000},
                  [](order_writer& into, const char* stage, int value) {
                      into.write(stage, "/proc/self/oom_score_adj", std::to_string(value));
                  }},
        limit_row{"limit", &of::resources, none{}, &add_resources},
        limit_row{"groups", &of::groups, none{}, &add_groups},
        limit_row{"user", &of::user, none{}, &add_user},
        limit_row{"no_new_privileges", &of::no_new_privileges, none{}, &add_no_new_privileges},
        limit_row{"argv0", &of::argv0, &require_name, &add_name},
        limit_row{"cpus", &of::cpus, none{}}, limit_row{"session", &of::session, none{}},
        limit_row{"executable", &of::executable, &require_absolute},
        // By the worker's cgroup:
        limit_row{"memory_max", &of::memory_max, &detail::require_some},
        limit_row{"cpu_max", &of::cpu_max, &detail::require_cores},
        limit_row{"tasks_max", &of::tasks_max, &detail::require_some});
}();

void for_each_limit(auto call) {
    std::apply([&](const auto&... rows) { (call(rows), ...); }, limit_rows);
}

}  // namespace cohort::protocol
