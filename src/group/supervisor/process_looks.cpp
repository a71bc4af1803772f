// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/process_looks.hpp"

#include "output/targets/call_threads.hpp"
#include "protocol/trace/activities.hpp"

#include <atomic>
#include <memory>
#include <set>
#include <utility>

namespace cohort::groups {

process_looks& process_looks::of(loop::engine& loop) {
    // A forked copy of this process has another loop; its parent's mutex may be locked there.
    static constinit std::atomic<process_looks*> latest{nullptr};
    auto* seen = latest.load();
    while (!seen || &seen->loop_ != &loop) {
        auto fresh = std::make_unique<process_looks>(loop);
        if (latest.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return *seen;
}

void process_looks::ask(pid_t leader, listener then) {
    {
        const std::lock_guard lock(mutex_);
        asked_.push_back({leader, std::move(then)});
    }
    output::call_threads::of(loop_).run([this] { answer(); }, [] {});
}

/// Answers all who have asked until now. Where an earlier look has answered them there is nothing
/// to do.
void process_looks::answer() {
    std::vector<question> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(asked_);
    }
    if (all.empty())
        return;
    std::set<pid_t> leaders;
    for (const auto& each : all)
        leaders.insert(each.leader);
    auto found = protocol::processes_of_groups(leaders);
    // What a listener owns may be destroyed on the engine's thread only, so it is moved there.
    for (auto& each : all)
        loop_.post(
            [then = std::move(each.then), processes = std::move(found[each.leader])]() mutable {
                then(std::move(processes));
            });
}

}  // namespace cohort::groups
