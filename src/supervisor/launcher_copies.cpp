// SPDX-License-Identifier: BSL-1.0
// How the launcher starts workers that are copies: of this process, or of the fork server.
#include "supervisor/launcher.hpp"

#include "copies/fork.hpp"
#include "exec/task.hpp"
#include "sys/descriptors.hpp"
#include "sys/memfd.hpp"
#include "sys/pidfd.hpp"
#include "worker/copy.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::supervisor {

namespace {

start_failure server_failure(const forkserver::server_failure& why) {
    return {why.code, why.text, -1, "forkserver"};
}

}  // namespace

std::optional<start_failure> launcher::make_channels() {
    std::error_code error;
    if (is_copy())
        started_event_ = sys::make_eventfd(error);
    if (error)
        return failure(error.value(), "eventfd", -1, exec::stage::memory_file);
    if (uses_server())
        order_file_ = sys::make_memfd("cohort-orders", error);
    if (order_file_)
        error = sys::add_seals(order_file_.get(), F_SEAL_SHRINK | F_SEAL_SEAL);
    if (error)
        return failure(error.value(), "memfd_create for the orders", -1, exec::stage::memory_file);
    return std::nullopt;
}

exec::exec_result launcher::start_by_fork(const worker_order& worker, const start_template& at,
                                          int index, int record, start_slots& slots) {
    const auto body = [&] {
        worker::run_as_copy(order_of(index, at), {at.record_number, worker.inode},
                            [&] { return plan_.call(index); });
    };
    return copies::start_by_fork(worker.order, {at.record_number, at.started_event_number}, record,
                                 started_event_.get(), body, slots.child);
}

/// What an executed worker has by itself: this process' output, as it is now. Last, so that a
/// failure with another descriptor is told by the same place in the list on both sides.
void launcher::describe_inherited(exec::exec_order& order, const start_template& at) const {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
        if (!at.where.descriptors.contains(fd))
            order.descriptors.push_back({fd, sys::survives_exec(fd) ? fd : -1, nullptr, 0});
}

start_report launcher::start_by_server(int index, start_slots& slots) {
    start_report report;
    report.index = index;
    // Once more if the server dies meanwhile; if that one dies too, it may be of this request.
    for (int attempt = 0; attempt < 2; ++attempt) {
        for (int i = index;
             i < std::min(size(), index + forkserver::forkserver_client::most_under_way); ++i) {
            if (asked_.contains(i))
                continue;
            report.failure = see_to_server(slots);
            if (!report.failure)
                report.failure = ask_for(i, slots);
            if (report.failure)
                break;
        }
        if (!asked_.contains(index)) {
            if (report.failure->code == std::errc::broken_pipe)
                continue;
            return report;
        }
        const auto asked = asked_.at(index);
        auto made = asked.of->take(asked.number, slots.server);
        asked_.erase(index);
        if (!made)
            continue;
        report.started = asked.at;
        report.own_cgroup = asked.cgroup;
        report.failure.reset();
        finish_copy(report, std::move(*made), slots);
        // Until a worker leads a group of its own it is in the server's, and ends with it.
        const bool ended_with_server = report.failure &&
                                       report.failure->code == std::errc::interrupted &&
                                       !asked.of->is_usable();
        if (!ended_with_server)
            return report;
        report.unwanted.push_back({std::move(report.pidfd), report.pid});
        records_[static_cast<std::size_t>(index)] = std::move(report.record);
    }
    report.failure = server_failure(
        {std::make_error_code(std::errc::connection_reset), "the fork server died twice"});
    return report;
}

std::optional<start_failure> launcher::see_to_server(start_slots& slots) {
    forkserver::forkserver_manager::surroundings where;
    const auto environment = orders::without(caller_.environment, own_variables());
    for (const char* entry : environment.entries())
        where.environment.push_back(const_cast<char*>(entry));
    where.environment.push_back(nullptr);
    where.directory_fd = caller_.directory ? caller_.directory.get() : -1;
    where.affinity = caller_.affinity.empty() ? nullptr : caller_.affinity.data();
    where.affinity_size = caller_.affinity_size();
    where.parent = caller_.pid;
    // The server is everybody's: what this group wants for itself does not count.
    with_.guardian.ensure();
    where.guard = with_.guardian.order(guard_message({}, orders::guarded::worker));
    if (const auto failed = with_.server.ensure(where, slots.child, slots.server, serving_))
        return server_failure(*failed);
    return std::nullopt;
}

std::optional<start_failure> launcher::ask_for(int index, start_slots& slots) {
    worker_order worker;
    if (auto failed = describe(worker, *shared_template_, index))
        return failed;
    const auto packed = forkserver::pack(
        worker.order, {shared_template_->record_number, shared_template_->started_event_number},
        worker.inode);
    asked_worker asked{serving_, 0, std::chrono::steady_clock::now(), worker.cgroup};
    auto error =
        sys::write_at(order_file_.get(), packed.text, static_cast<off_t>(order_file_length_));
    if (!error)
        error =
            serving_->ask(order_file_.get(),
                          {0, caller_.pid, packed.cgroup, order_file_length_, packed.text.size()},
                          packed.descriptors, asked.number, slots.server);
    if (error)
        return start_failure{error, "a request to the fork server", index, "forkserver"};
    order_file_length_ += packed.text.size();
    asked_.emplace(index, asked);
    return std::nullopt;
}

void launcher::finish_copy(start_report& report, exec::exec_result made, start_slots& slots) {
    report.record = std::move(records_[static_cast<std::size_t>(report.index)]);
    if (made.failed == exec::stage::none) {
        exec::own_pidfd(made, made.pidfd.release(), slots.child);
        copies::await_copy(made, report.record.get(), started_event_.get());
        if (made.is_unguarded)
            with_.guardian.tell_late(guard_, made.pidfd.get());
    }
    report.pid = made.pid;
    report.pidfd = std::move(made.pidfd);
    if (made.failed == exec::stage::none)
        return;
    exec::exec_order order;  // anew, for the words
    describe_descriptors(order, *shared_template_, report.index, report.record.get());
    report.failure = failure_of(made, order, *shared_template_, report.index);
}

std::vector<unwanted_child> launcher::withdraw(start_slots& slots) {
    std::vector<unwanted_child> unwanted;
    for (const auto& [index, asked] : std::exchange(asked_, {})) {
        auto made = asked.of->take(asked.number, slots.server);
        if (!made || !made->pidfd)
            continue;
        (void)!!sys::send_signal(made->pidfd.get(), SIGKILL);
        unwanted.push_back({std::move(made->pidfd), made->pid});
    }
    return unwanted;
}

}  // namespace cohort::supervisor
