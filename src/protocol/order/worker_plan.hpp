// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/plan.hpp>

#include <optional>

namespace cohort::protocol {

/// How a worker process is made.
enum class start_kind {
    executed,  // by execve, also for a function
    forked,    // a copy of this process
    served,    // a copy of the fork server
};

/// What a group's plan says of one worker.
struct worker_plan {
    start_kind kind = start_kind::executed;
    const detail::program* command = nullptr;  // null: it calls a function
    const detail::placement* own = nullptr;    // the worker's own settings; null: it has none
    const detail::placement* where = nullptr;  // the group's, then its own, then the command's

    bool calls_function() const noexcept { return command == nullptr; }
    bool is_copy() const noexcept { return kind != start_kind::executed; }
};

/// The plans of a group's workers. Borrows the group's plan. Belongs to one thread at a time.
class worker_plans {
public:
    explicit worker_plans(const detail::spawn_plan& plan) noexcept : plan_(plan) {}

    /// `where` is valid until the next call for another worker.
    worker_plan of(int index);
    /// That of all workers of a group.
    start_kind kind() const noexcept;

private:
    const detail::spawn_plan& plan_;
    // Those from which `where_` was made.
    const detail::program* command_ = nullptr;
    const detail::placement* own_ = nullptr;
    std::optional<detail::placement> where_;
};

}  // namespace cohort::protocol
