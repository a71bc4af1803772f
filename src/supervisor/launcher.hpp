// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "cgroup/group_cgroups.hpp"
#include "cgroup/worker_cgroup.hpp"
#include "engine/background_thread.hpp"
#include "exec/exec.hpp"
#include "forkserver/forkserver_manager.hpp"
#include "guardian/guardian_client.hpp"
#include "orders/caller.hpp"
#include "record/control.hpp"
#include "sys/descriptors.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/engine.hpp>
#include <cohort/detail/plan.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace cohort::supervisor {

using detail::start_failure;

/// A child that is no worker, or that nobody wants as one any more. It may have run for a while.
struct unwanted_child {
    sys::unique_fd pidfd;
    pid_t pid = 0;  // 0: it failed before it could have children
};

/// What became of one start. On failure `pidfd` may be set: a child that has exited and must be
/// reaped.
struct start_report {
    int index = -1;
    pid_t pid = 0;
    sys::unique_fd pidfd;
    sys::unique_fd record;
    sys::unique_fd stacks;  // what the worker writes there can be read from it
    std::chrono::steady_clock::time_point started;
    std::optional<start_failure> failure;
    std::shared_ptr<cgroups::group_cgroup> cgroup;             // of the group, with each report
    std::shared_ptr<const cgroups::worker_cgroup> own_cgroup;  // of the worker; null: it has none
    std::vector<unwanted_child> unwanted;  // killed, or failed before a second try: to be reaped
};

/// What a start waits for, for another thread that is to end it.
struct start_slots {
    std::atomic<int> child = -1;  // a pidfd, see start_by_exec
    forkserver::forkserver_wait server;
};

/// What the groups of a process have in common.
struct helpers {
    forkserver::forkserver_manager& server;
    cgroups::group_cgroups& group_cgroups;
    guardian::guardian& guardian;
    engine::background_thread& cgroups;  // ends the cgroups
};

/// Turns a plan into starts: everything that is said about a worker becomes an exec_order here.
/// Belongs to the starter thread, except for its construction.
class launcher {
public:
    launcher(detail::spawn_plan plan, orders::caller from, helpers with);

    /// Makes all descriptors that the group needs, before the first worker exists.
    std::optional<start_failure> prepare();
    /// Starts worker `index`; those before it have been started.
    start_report start(int index, start_slots& slots);
    /// After the last start: kills the workers that were asked for and not reported.
    /// @return all of them; they may live for a moment, and have children
    std::vector<unwanted_child> withdraw(start_slots& slots);
    /// What the group has of its own once it is prepared, if anything: its user must end it.
    const std::shared_ptr<cgroups::group_cgroup>& cgroup() const noexcept { return cgroup_; }
    int size() const noexcept { return plan_.settings.nprocs; }

private:
    /// What workers with the same program have in common.
    struct start_template {
        const detail::program* program = nullptr;  // null: a function
        detail::placement where;
        orders::environment environment;
        std::vector<std::string> candidates;
        int record_number = -1;         // the worker's descriptor of its record ...
        int arguments_number = -1;      // ... of its function's arguments ...
        int started_event_number = -1;  // ... of what a copy rings ...
        int stacks_number = -1;         // ... and of where it writes its stacks
    };
    /// The strings that exist for one worker only, while it is being started.
    struct strings {
        std::vector<std::string> argv;
        std::vector<std::string> variables;
        std::string suffix;
    };
    struct worker_order {
        exec::exec_order order;
        strings own;
        ino_t inode = 0;  // of a function's record
        std::shared_ptr<const cgroups::worker_cgroup> cgroup;
        sys::unique_fd cgroup_directory;
    };
    /// What the fork server was asked for.
    struct asked_worker {
        std::shared_ptr<forkserver::forkserver_client> of;
        std::uint64_t number = 0;
        std::chrono::steady_clock::time_point at;
        std::shared_ptr<const cgroups::worker_cgroup> cgroup;
    };

    /// What the launcher sets in a worker's environment; the caller's own are not passed on.
    static std::span<const std::string_view> own_variables() noexcept;
    static start_failure failure(int error, std::string text, int index, exec::stage at);
    bool runs_function() const noexcept { return plan_.function != nullptr; }
    /// Its workers are forked copies of a process.
    bool is_copy() const noexcept { return plan_.call || uses_server(); }
    bool uses_server() const noexcept {
        return runs_function() && plan_.settings.method == start_method::forkserver;
    }
    static orders::guard_message guard_message(const detail::group_settings& settings,
                                               orders::guarded what);
    void see_to_guardian();
    std::optional<start_failure> check_limit() const;
    std::optional<start_failure> make_group_cgroup();
    std::optional<start_failure> make_arguments();
    std::optional<start_failure> make_channels();
    std::optional<start_failure> make_record(int index);
    start_template make_template(const detail::program* program) const;
    record::control_order order_of(int index, const start_template& at) const;
    std::optional<start_failure> describe(worker_order& into, const start_template& at, int index);
    std::optional<start_failure> make_worker_cgroup(worker_order& into, int index) const;
    start_failure cgroup_failure(std::error_code error, int index) const;
    std::vector<std::string> variables_of(int index, const start_template& at) const;
    void describe_texts(worker_order& into, const start_template& at, int index) const;
    void describe_descriptors(exec::exec_order& order, const start_template& at, int index,
                              int record);
    void describe_inherited(exec::exec_order& order, const start_template& at) const;

    exec::exec_result start_by_fork(const worker_order& worker, const start_template& at, int index,
                                    int record, start_slots& slots);
    start_report start_here(int index, start_slots& slots);
    start_report start_by_server(int index, start_slots& slots);
    std::optional<start_failure> ask_for(int index, start_slots& slots);
    std::optional<start_failure> see_to_server(start_slots& slots);
    void finish_copy(start_report& report, exec::exec_result made, start_slots& slots);
    start_failure failure_of(const exec::exec_result& result, const exec::exec_order& order,
                             const start_template& at, int index) const;

    detail::spawn_plan plan_;
    orders::caller caller_;
    const helpers with_;
    std::shared_ptr<cgroups::group_cgroup> cgroup_;
    orders::guard_order guard_of_cgroup_;
    orders::guard_order guard_;  // of each worker
    std::vector<sys::unique_fd> records_;
    std::vector<sys::pipe_ends> stacks_;  // of each worker, if they are asked for
    sys::unique_fd arguments_;
    sys::unique_fd started_event_;  // of workers that are copies
    sys::unique_fd order_file_;     // the orders that the fork server is asked to fulfil
    std::uint64_t order_file_length_ = 0;
    std::shared_ptr<forkserver::forkserver_client> serving_;  // as last seen
    std::map<int, asked_worker> asked_;
    std::optional<start_template> shared_template_;
    std::set<std::string> emptied_;  // files that a worker of this group has already emptied
};

}  // namespace cohort::supervisor
