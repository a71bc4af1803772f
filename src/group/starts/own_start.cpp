// SPDX-License-Identifier: BSL-1.0
#include "group/starts/start_way.hpp"
#include "start/copies/copies.hpp"
#include "worker/main/worker_main.hpp"
#include "worker/report/report.hpp"

#include <chrono>
#include <utility>

namespace cohort::groups {
namespace {

class own final : public start_way {
public:
    explicit own(start_plan& plan) noexcept : plan_(plan) {}

    void start(int index, start_slots& slots, start_report& report) override {
        report.index = index;
        start_plan::prepared_worker worker;
        report.failure = plan_.prepare_worker(index, worker);
        report.record = plan_.take_record(index);
        report.own_cgroup = worker.cgroup;
        report.cpus = worker.cpus;
        if (report.failure)
            return;
        report.started = std::chrono::steady_clock::now();
        auto result = plan_.kind() == protocol::start_kind::forked
                          ? make_copy(worker.order, index, slots)
                          : start::start_by_exec(worker.order, slots.child);
        report.pid = result.pid;
        report.pidfd = std::move(result.pidfd);
        if (result.is_unguarded)
            plan_.notify_guardian(report.pid, report.pidfd.get());
        if (result.first_child)
            report.unwanted.push_back({std::move(result.first_child), 0});
        if (result.failed != start::stage::none)
            report.failure = plan_.failure_of(result, *worker.order, index);
    }

private:
    start::exec_result make_copy(protocol::order_block& order, int index, start_slots& slots) {
        const auto body = [&] {
            const auto control = plan_.builder().control_of(index, plan_.attempt());
            worker::run_as_copy(
                control, {order->channel.record, static_cast<ino_t>(order->record_inode)},
                [&] { return plan_.plan().call(index, worker::take_attachments(control)); });
        };
        return start::start_by_fork(order, plan_.reports(), body, slots.child);
    }

    start_plan& plan_;
};

}  // namespace

std::unique_ptr<start_way> way_of(start_plan& plan) {
    if (plan.kind() == protocol::start_kind::served)
        return served_start(plan);
    return std::make_unique<own>(plan);
}

}  // namespace cohort::groups
