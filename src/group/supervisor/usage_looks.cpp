// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/usage_looks.hpp"

#include "base/sys/processes.hpp"
#include "output/targets/call_threads.hpp"
#include "start/cgroup/cgroup.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace cohort::groups {
namespace {

using usages = std::vector<worker_usage>;

/// What a look has found.
struct seen_usage {
    usages found;
    std::error_code error;
};

worker_usage usage_in(const base::process_usage& process, const looked_at& worker) {
    worker_usage usage;
    usage.index = worker.index;
    usage.cpu_time = process.cpu_time();
    usage.resident = process.resident();
    usage.threads = process.threads;
    usage.state = process.state;
    const auto directory = worker.cgroup ? worker.cgroup->open() : base::unique_fd();
    if (!directory)
        return usage;
    const auto all = start::usage_of_cgroup(directory.get());
    usage.cpu_time = all.cpu_time.value_or(usage.cpu_time);
    usage.resident = all.memory.value_or(usage.resident);
    usage.threads = all.tasks.value_or(usage.threads);
    return usage;
}

seen_usage look_at(const std::vector<looked_at>& workers) {
    seen_usage at;
    for (const auto& worker : workers) {
        errno = 0;
        const auto process = base::usage_of(worker.pid, worker.pidfd.get());
        if (process && process->state != 'Z' && process->state != 'X')
            at.found.push_back(usage_in(*process, worker));
        // Not ENOENT, because what a worker has had is gone when it has ended.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            at.error = std::error_code(errno, std::system_category());
    }
    return at;
}

}  // namespace

detail::completion failed_usage(std::error_code error) {
    auto failed = detail::completion_of(detail::completion::kind::failed);
    failed.error = std::make_exception_ptr(std::system_error(error, "cohort::group::usage"));
    return failed;
}

usage_looks& usage_looks::of(loop::runtime& runtime) {
    // A forked copy of this process has another runtime.
    static constinit std::atomic<usage_looks*> latest{nullptr};
    auto* seen = latest.load();
    while (!seen || &seen->runtime_ != &runtime) {
        auto fresh = std::make_unique<usage_looks>(runtime);
        if (latest.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return *seen;
}

void usage_looks::ask(std::vector<looked_at> workers, std::error_code error, detail::receiver to) {
    if (error)
        return (void)runtime_.deliver(to, failed_usage(error));
    const auto waiting = std::make_shared<loop::waiters>(runtime_, runtime_.loop());
    waiting->add(std::move(to), std::nullopt);
    looks_.push_back(waiting);
    const auto seen = std::make_shared<seen_usage>();
    const auto looked = std::make_shared<std::vector<looked_at>>(std::move(workers));
    output::call_threads::of(runtime_.loop())
        .run([looked, seen] { *seen = look_at(*looked); },
             [this, waiting, seen] {
                 auto done = seen->error ? failed_usage(seen->error) : detail::completion();
                 done.usage = std::shared_ptr<usages>(seen, &seen->found);
                 waiting->complete_all(done);
                 std::erase(looks_, waiting);
             });
}

bool usage_looks::stop_waiting(detail::operation_id id) {
    return std::ranges::any_of(looks_, [id](const auto& look) { return look->stop_waiting(id); });
}

}  // namespace cohort::groups
