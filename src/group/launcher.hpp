// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/caller.hpp"
#include "record/control.hpp"
#include "start/exec.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/plan.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::group_room {

/// Why a worker could not be started, ready to become a spawn_error.
struct start_failure {
    std::error_code code;
    std::string text;  // what was tried: `exec("trian.py")`
    int index = -1;
    std::string stage;  // "exec"
};

/// What became of one start. On failure `pidfd` may be set: a child that has exited and must be
/// reaped.
struct start_report {
    int index = -1;
    pid_t pid = 0;
    sys::unique_fd pidfd;
    sys::unique_fd spent;  // see start::exec_result
    sys::unique_fd record;
    std::chrono::steady_clock::time_point started;
    std::optional<start_failure> failure;
};

/// Turns a plan into starts: everything that is said about a worker becomes an exec_order here.
/// Belongs to the starter thread, except for its construction.
class launcher {
public:
    launcher(detail::spawn_plan plan, caller from);

    /// Makes all descriptors that the group needs, before the first worker exists.
    std::optional<start_failure> prepare();
    /// Starts worker `index`. @param pidfd_slot  see start_by_exec
    start_report start(int index, std::atomic<int>& pidfd_slot);
    int size() const noexcept { return plan_.settings.nprocs; }

private:
    /// What workers with the same program have in common.
    struct site {
        const detail::program* program = nullptr;  // null: a function
        detail::placement where;
        start::environment environment;
        std::vector<std::string> candidates;
        int record_number = -1;     // the worker's descriptor of its record ...
        int arguments_number = -1;  // ... of its function's arguments ...
        int bell_number = -1;       // ... and of what a copy rings
    };
    struct strings;  // of one worker

    bool runs_function() const noexcept { return plan_.function != nullptr; }
    /// Its workers are forked copies of a process.
    bool is_copy() const noexcept { return static_cast<bool>(plan_.call); }
    std::optional<start_failure> check_limit() const;
    std::optional<start_failure> make_arguments();
    std::optional<start_failure> make_bell();
    std::optional<start_failure> make_record(int index);
    site make_site(const detail::program* program) const;
    record::control_order order_of(int index, const site& at) const;
    start::exec_result start_copy(const start::exec_order& order, const site& at, int index,
                                  ino_t inode, int record, std::atomic<int>& pidfd_slot);
    void describe_descriptors(start::exec_order& order, const site& at, int record);
    void describe_texts(start::exec_order& order, strings& own, const site& at, int index,
                        ino_t inode) const;
    start_failure failure_of(const start::exec_result& result, const start::exec_order& order,
                             const site& at, int index) const;

    detail::spawn_plan plan_;
    caller caller_;
    std::vector<sys::unique_fd> records_;
    sys::unique_fd arguments_;
    sys::unique_fd bell_;
    std::optional<site> shared_site_;
    std::set<std::string> emptied_;  // files that a worker of this group has already emptied
};

}  // namespace cohort::group_room
