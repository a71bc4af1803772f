// SPDX-License-Identifier: BSL-1.0
#include "group/state/live_workers.hpp"

#include <utility>
#include <vector>

namespace cohort::groups {

live_workers::worker& live_workers::add(int index, std::shared_ptr<worker_process> process) {
    auto& added = workers_[index];
    added.process = std::move(process);
    if (has_looked_)
        added.process->note_late_start();
    return added;
}

live_workers::worker live_workers::take(int index) {
    return std::move(workers_.extract(index).mapped());
}

void live_workers::look_which_end() noexcept {
    if (std::exchange(has_looked_, true))
        return;
    for (auto& [index, worker] : workers_)
        worker.process->look_whether_it_ends();
}

void live_workers::signal(int signo) {
    for (auto& [index, worker] : workers_)
        worker.process->signal(signo);
}

void live_workers::signal(int index, int signo) {
    if (const auto found = workers_.find(index); found != workers_.end())
        found->second.process->signal(signo);
}

void live_workers::send_stop_signal(int signo) {
    for (auto& [index, worker] : workers_)
        worker.process->send_stop_signal(signo);
}

void live_workers::send_kill() {
    for (auto& [index, worker] : workers_)
        worker.process->send_kill();
}

void live_workers::stop_to_restart() {
    for (auto& [index, worker] : workers_)
        worker.process->stop_to_restart();
}

void live_workers::note_cut_short(const cut_short& why) {
    for (auto& [index, worker] : workers_)
        worker.process->note_cut_short(why);
}

std::vector<looked_at> live_workers::to_be_looked_at(std::error_code& error) const {
    std::vector<looked_at> live;
    for (const auto& [index, worker] : workers_)
        if (auto found = worker.process->to_be_looked_at(error))
            live.push_back(std::move(*found));
    return live;
}

std::vector<int> live_workers::uncount() {
    std::vector<int> left;
    for (auto& [index, worker] : workers_)
        if (!worker.is_read) {
            worker.is_counted = false;
            left.push_back(index);
        }
    return left;
}

}  // namespace cohort::groups
