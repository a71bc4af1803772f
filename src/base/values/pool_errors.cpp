// SPDX-License-Identifier: BSL-1.0
#include <cohort/pool_errors.hpp>
#include <cohort/pool_stats.hpp>

#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <utility>

// The destructors are here so that each class has its type information in one module, where a catch
// in another module finds it.
namespace cohort {

struct task_timeout::details {
    std::string function;
    std::vector<activity> at_stop;
};

task_timeout::task_timeout(std::chrono::steady_clock::duration limit, pid_t pid, int index,
                           const std::string& function, std::vector<activity> at_stop)
    : std::runtime_error(fmt::format("{} ran for longer than {} in worker {}, which was stopped",
                                     function, base::duration_text(limit), index)),
      limit_(limit), pid_(pid), index_(index),
      details_(std::make_shared<const details>(details{function, std::move(at_stop)})) {}
task_timeout::~task_timeout() = default;
const std::string& task_timeout::function() const noexcept { return details_->function; }
const std::vector<activity>& task_timeout::at_stop() const noexcept { return details_->at_stop; }

queue_timeout::queue_timeout(std::chrono::steady_clock::duration limit)
    : std::runtime_error(fmt::format("the call waited for a worker of the pool for longer than {}",
                                     base::duration_text(limit))),
      limit_(limit) {}
queue_timeout::~queue_timeout() = default;

pool_broken::pool_broken(int attempts, const std::string& why)
    : std::runtime_error(fmt::format("no worker of the pool becomes ready: {} in a row died "
                                     "before; the last one: {}",
                                     attempts, why)),
      attempts_(attempts) {}
pool_broken::~pool_broken() = default;

const char* to_string(worker_state s) noexcept {
    switch (s) {
    case worker_state::starting:
        return "starting";
    case worker_state::idle:
        return "idle";
    case worker_state::running:
        return "running";
    case worker_state::stopping:
        return "stopping";
    }
    return "?";
}

}  // namespace cohort
