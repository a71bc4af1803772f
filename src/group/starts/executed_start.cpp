// SPDX-License-Identifier: BSL-1.0
#include "group/starts/start_way.hpp"

#include <chrono>
#include <utility>

namespace cohort::groups {
namespace {

class executed final : public start_way {
public:
    explicit executed(start_plan& plan) noexcept : plan_(plan) {}

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
        auto result = start::start_by_exec(worker.order, slots.child);
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
    start_plan& plan_;
};

}  // namespace

std::unique_ptr<start_way> executed_start(start_plan& plan) {
    return std::make_unique<executed>(plan);
}

std::unique_ptr<start_way> way_of(start_plan& plan) {
    switch (plan.kind()) {
    case protocol::start_kind::forked:
        return forked_start(plan);
    case protocol::start_kind::served:
        return served_start(plan);
    case protocol::start_kind::executed:
        break;
    }
    return executed_start(plan);
}

}  // namespace cohort::groups
