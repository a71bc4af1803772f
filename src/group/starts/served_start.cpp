// SPDX-License-Identifier: BSL-1.0
#include "group/starts/start_way.hpp"

#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"
#include "group/starts/guard_message.hpp"
#include "start/copies/copies.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace cohort::groups {
namespace {

/// How many bytes of orders that were read stay in the order file.
constexpr std::uint64_t most_read_orders = 1 << 20;

start_failure server_failure(const start::server_failure& why) {
    return {why.code, why.text, -1, "forkserver"};
}

class served final : public start_way {
public:
    explicit served(start_plan& plan)
        : plan_(plan), environment_(protocol::order_builder::inherited(plan.from().environment)) {}

    std::optional<start_failure> prepare() override;
    void start(int index, start_slots& slots, start_report& report) override;
    std::vector<unwanted_child> withdraw(start_slots& slots) override;

private:
    /// A worker that a server was asked to start.
    struct asked_worker {
        std::shared_ptr<start::forkserver_client> of;
        std::uint64_t number = 0;
        std::chrono::steady_clock::time_point at;
        start_plan::prepared_worker worker;
    };

    std::optional<start_failure> ask_ahead(int index, start_slots& slots);
    std::optional<start_failure> ensure_server(start_slots& slots);
    std::optional<start_failure> ask_for(int index, start_slots& slots);
    void finish(start_report& report, start::exec_result made, const protocol::worker_order& order,
                start_slots& slots);

    start_plan& plan_;
    const protocol::environment environment_;  // for a new server
    base::unique_fd order_file_;               // holds the orders of all requests
    std::uint64_t order_file_length_ = 0;
    std::shared_ptr<start::forkserver_client> serving_;  // the server as of the last ensure()
    std::map<int, asked_worker> asked_;
};

std::optional<start_failure> served::prepare() {
    std::error_code error;
    order_file_ = base::make_memfd("cohort-orders", error);
    if (!error)
        error = base::add_seals(order_file_.get(), F_SEAL_SHRINK | F_SEAL_SEAL);
    if (error)
        return start_plan::failure(error.value(), "memfd_create for the orders", -1,
                                   start::stage::memory_file);
    return std::nullopt;
}

void served::start(int index, start_slots& slots, start_report& report) {
    report.index = index;
    // If the server dies meanwhile, ask another one, but no third, as this request may kill them.
    for (int attempt = 0; attempt < 2; ++attempt) {
        report.failure = ask_ahead(index, slots);
        if (!asked_.contains(index)) {
            if (report.failure->code == std::errc::broken_pipe)
                continue;
            return;
        }
        const auto asked = std::move(asked_.extract(index).mapped());
        auto made = asked.of->take(asked.number, slots.server);
        if (!made)
            continue;
        report.started = asked.at;
        report.own_cgroup = asked.worker.cgroup;
        report.cpus = asked.worker.cpus;
        report.failure.reset();
        finish(report, std::move(*made), *asked.worker.order, slots);
        // A worker is in the server's process group at first, and ends when that group is killed.
        const bool ended_with_server = report.failure &&
                                       report.failure->code == std::errc::interrupted &&
                                       !asked.of->is_usable();
        if (!ended_with_server)
            return;
        report.unwanted.push_back({std::move(report.pidfd), report.pid});
        plan_.give_record_back(index, std::move(report.record));
    }
    report.failure = server_failure({std::make_error_code(std::errc::connection_reset),
                                     "the fork server ended twice during this start"});
}

/// Asks the server for worker `index` and for some that follow it, so that the server need not wait
/// for this thread. @return the failure of one of these requests, if any
std::optional<start_failure> served::ask_ahead(int index, start_slots& slots) {
    const int end =
        std::min(plan_.end_of_asked(), index + start::forkserver_client::most_under_way);
    for (int i = index; i < end; ++i) {
        if (asked_.contains(i))
            continue;
        if (auto failed = ensure_server(slots))
            return failed;
        if (auto failed = ask_for(i, slots))
            return failed;
    }
    return std::nullopt;
}

std::optional<start_failure> served::ensure_server(start_slots& slots) {
    // All groups share the server, so it is guarded by default settings and not by this group's.
    const auto guardian = plan_.with().guardian.ensure_running();
    const start::forkserver_manager::surroundings where{
        environment_, plan_.from(),
        guardian.order(guard_message_of({}, protocol::guarded::worker))};
    if (const auto failed = plan_.with().server.ensure(where, slots.child, slots.server, serving_))
        return server_failure(*failed);
    return std::nullopt;
}

std::optional<start_failure> served::ask_for(int index, start_slots& slots) {
    // The workers of all orders in the file have read them.
    if (asked_.empty() && order_file_length_ > most_read_orders)
        order_file_length_ = 0;
    asked_worker asked{serving_, 0, {}, {}};
    if (auto failed = plan_.prepare_worker(index, asked.worker))
        return failed;
    asked.at = std::chrono::steady_clock::now();
    const auto& order = asked.worker.order;
    const auto bytes = order.bytes();
    auto error = base::write_at(order_file_.get(), bytes, static_cast<off_t>(order_file_length_));
    if (!error)
        error =
            serving_->ask(order_file_.get(),
                          {0, plan_.from().pid, order->cgroup, order_file_length_, bytes.size()},
                          order.descriptors(), asked.number, slots.server);
    if (error)
        return start_failure{error, "sending a request to the fork server", index, "forkserver"};
    order_file_length_ += bytes.size();
    asked.worker.cgroup_directory.reset();  // the request holds a copy
    asked_.emplace(index, std::move(asked));
    return std::nullopt;
}

void served::finish(start_report& report, start::exec_result made,
                    const protocol::worker_order& order, start_slots& slots) {
    report.record = plan_.take_record(report.index);
    const bool has_begun = made.failed == start::stage::none;
    if (has_begun) {
        start::own_pidfd(made, made.pidfd.release(), slots.child);
        plan_.reports().await(made, order.channel.ticket, slots.child);
    }
    report.pid = made.pid;
    report.pidfd = std::move(made.pidfd);
    if (has_begun && made.is_unguarded)
        plan_.notify_guardian(report.pid, report.pidfd.get());
    if (made.failed != start::stage::none)
        report.failure = plan_.failure_of(made, order, report.index);
}

std::vector<unwanted_child> served::withdraw(start_slots& slots) {
    std::vector<unwanted_child> unwanted;
    unwanted.reserve(asked_.size());
    for (const auto& [index, asked] : std::exchange(asked_, {})) {
        auto made = asked.of->take(asked.number, slots.server);
        if (!made || !made->pidfd)
            continue;
        std::ignore = base::send_signal(made->pidfd.get(), SIGKILL);
        unwanted.push_back({std::move(made->pidfd), made->pid});
    }
    return unwanted;
}

}  // namespace

std::unique_ptr<start_way> served_start(start_plan& plan) { return std::make_unique<served>(plan); }

}  // namespace cohort::groups
