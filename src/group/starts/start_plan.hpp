// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/starts/start_report.hpp"
#include "group/starts/worker_cpus.hpp"
#include "loop/threads/background_thread.hpp"
#include "output/streams/group_streams.hpp"
#include "protocol/order/caller.hpp"
#include "protocol/order/order_builder.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/copies/copies.hpp"
#include "start/exec/exec.hpp"
#include "start/forkserver/forkserver_manager.hpp"
#include "start/guardian/guardian_client.hpp"

#include <cohort/detail/plan.hpp>

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace cohort::groups {

/// What a start uses besides its plan: what all groups of this process share, and the streams.
struct helpers {
    start::forkserver_manager& server;
    start::group_cgroups& group_cgroups;
    start::client& guardian;
    loop::background_thread& cgroups;                // the thread that ends the cgroups
    std::shared_ptr<output::group_streams> streams;  // of the group
};

/// All that the starts of one group share: its plan, its caller, and the descriptors that are made
/// for its workers. Those of the workers that start with the group are made before the first of
/// them exists, so that all start or none. Belongs to the starter thread, except for its
/// construction.
class start_plan {
public:
    start_plan(detail::spawn_plan plan, protocol::caller_ref from, helpers with);
    ~start_plan();
    start_plan(const start_plan&) = delete;
    start_plan& operator=(const start_plan&) = delete;

    /// Makes all descriptors that the group and the workers that start with it need.
    std::optional<start_failure> prepare();

    /// One worker, ready to be started.
    struct prepared_worker {
        protocol::order_block order;
        std::shared_ptr<const start::worker_cgroup> cgroup;  // null: it has none of its own
        base::unique_fd cgroup_directory;
        cpu_places::lease cpus;  // null: it has no part of its own
    };
    /// Makes the worker's descriptors if it starts later than the group. Writes its control file,
    /// makes its cgroup if it has one of its own, and builds its order.
    std::optional<start_failure> prepare_worker(int index, prepared_worker& into);
    /// Hands out the record of a worker, for its report.
    base::unique_fd take_record(int index) { return std::move(record_of(index)); }
    void give_record_back(int index, base::unique_fd record) {
        record_of(index) = std::move(record);
    }
    /// Closes the worker's end of the pipe for its stacks.
    /// @return this process' end, for the report
    base::unique_fd take_stacks(int index);
    /// Closes the ends of pipes that this worker, which has started, now has.
    void close_ends_of_started(int index) noexcept;
    /// Closes all that was made for a worker whose start has failed.
    void forget(int index) noexcept;
    /// Closes the worker's end of the socket for the descriptors that its result holds.
    /// @return this process' end, for the report
    base::unique_fd take_results(int index) noexcept;
    /// Tells the guardian about a worker that could not do that itself.
    void notify_guardian(pid_t worker, int pidfd) {
        protocol::guard_order guard = guards_.of_worker;
        protocol::add_numbers(guard.message, worker);
        with_.guardian.resend(guard, pidfd);
    }

    static start_failure failure(int error, std::string text, int index, start::stage at);
    start_failure failure_of(const start::exec_result& result, const protocol::worker_order& order,
                             int index);

    /// The group's cgroup after prepare(); null: it has none. The caller must end it.
    const std::shared_ptr<start::group_cgroup>& cgroup() const noexcept { return cgroup_; }
    int size() const noexcept { return plan_.settings.nprocs; }
    /// How many workers start with the group.
    int first_count() const noexcept;
    /// The workers from one to this one may be asked for ahead.
    int end_of_asked() const noexcept { return asked_.end; }
    /// Only this worker is asked for, once the workers that start with the group have started.
    /// @param attempt  how often it was started before
    void limit_to(int index, int attempt) noexcept {
        asked_.end = index + 1;
        asked_.attempt = attempt;
    }
    /// How often the workers that are asked for were started before.
    int attempt() const noexcept { return asked_.attempt; }
    const detail::spawn_plan& plan() const noexcept { return plan_; }
    const protocol::caller& from() const noexcept { return *caller_; }
    const helpers& with() const noexcept { return with_; }
    protocol::order_builder& builder() noexcept { return builder_; }
    /// What copies report of their starts.
    start::copy_reports& reports() noexcept { return reports_; }
    protocol::start_kind kind() const noexcept { return workers_.kind(); }
    protocol::worker_plan worker(int index) { return workers_.of(index); }
    /// What the workers do, after prepare().
    const std::shared_ptr<const work_texts>& works() const noexcept { return works_; }

private:
    bool makes_copies() const noexcept { return kind() != protocol::start_kind::executed; }
    bool asks_for_stacks() const noexcept {
        return plan_.settings.stack_on_stop && plan_.calls_function();
    }
    protocol::host_facts host_facts() const;
    base::unique_fd& record_of(int index) { return records_[static_cast<std::size_t>(index)]; }
    void ensure_guardian();
    std::optional<start_failure> check_limit() const;
    std::optional<start_failure> check_attachments();
    std::optional<start_failure> make_group_cgroup();
    std::optional<start_failure> make_arguments();
    std::optional<start_failure> make_copy_reports();
    std::optional<start_failure> make_results(int index);
    std::optional<start_failure> make_record(int index);
    std::optional<start_failure> make_descriptors(int index, output::base_directories& bases);
    bool has_worker_cgroups() const noexcept;
    std::optional<start_failure> make_worker_cgroup(prepared_worker& into, int index);
    start_failure cgroup_failure(const start::limit_failure& why, int index) const;
    std::string cgroup_text() const;
    std::string exec_text(int error, int index);

    detail::spawn_plan plan_;
    const protocol::caller_ref caller_;
    const helpers with_;
    protocol::worker_plans workers_;
    std::shared_ptr<const work_texts> works_;
    protocol::order_builder builder_;
    worker_cpus cpus_;
    std::shared_ptr<start::group_cgroup> cgroup_;
    struct {
        protocol::guard_order of_cgroup;
        protocol::guard_order of_worker;  // the same for each
    } guards_;
    struct {
        int end = 0;      // of the workers that are asked for
        int attempt = 0;  // see attempt()
    } asked_;
    std::vector<base::unique_fd> records_;  // by index
    std::vector<base::pipe_ends> stacks_;   // by index; empty if workers are not asked for stacks
    base::unique_fd arguments_;
    start::copy_reports reports_;  // open only if the workers are copies
    std::uint32_t last_ticket_ = 0;
    struct socket_ends {
        base::unique_fd ours;
        base::unique_fd theirs;
    };
    std::vector<socket_ends> results_;  // by index; empty if results hold no descriptors
};

}  // namespace cohort::groups
