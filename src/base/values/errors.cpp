// SPDX-License-Identifier: BSL-1.0
#include <cohort/errors.hpp>

#include "base/values/group_end.hpp"
#include "base/values/quantity.hpp"

#include <cohort/host_errors.hpp>
#include <cohort/pool_errors.hpp>
#include <cohort/pool_stats.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// The destructors are here so that each class has its type information in one module, where a catch
// in another module finds it.
namespace cohort {

codec_error::~codec_error() = default;

result_error::~result_error() = default;

sharing_error::sharing_error(std::error_code code, const std::string& text)
    : std::system_error(code), text_(std::make_shared<const std::string>(text)) {}
sharing_error::~sharing_error() = default;

const char* sharing_error::what() const noexcept { return text_->c_str(); }

broken_queue::broken_queue(const std::string& text)
    : std::system_error(std::make_error_code(std::errc::broken_pipe), text) {}
broken_queue::~broken_queue() = default;

broken_barrier::broken_barrier(const std::string& text, int index)
    : std::runtime_error(text), index_(index) {}
broken_barrier::~broken_barrier() = default;

}  // namespace cohort

// Of groups. Constructors may throw; copying does not, because copies share their contents.
namespace cohort {

namespace {

process_exception::outcome_list or_none(process_exception::outcome_list outcomes) {
    return outcomes ? std::move(outcomes) : std::make_shared<const std::vector<outcome>>();
}

/// The outcome of the worker with this index; null: there is none.
const outcome* outcome_of(const std::vector<outcome>& all, int index) {
    const auto found = std::ranges::find(all, index, &outcome::index);
    return index < 0 || found == all.end() ? nullptr : &*found;
}

std::shared_ptr<const report> report_of(const process_exception::outcome_list& outcomes,
                                        std::chrono::steady_clock::duration limit) {
    auto made = detail::report_with(outcomes ? *outcomes : std::vector<outcome>());
    made.time_limit = limit;
    return std::make_shared<const report>(std::move(made));
}

std::string with_index(const char* what, int index) {
    std::string text = what;
    if (index >= 0)
        text += " (worker " + std::to_string(index) + ")";
    return text;
}

}  // namespace

process_exception::process_exception(const std::string& text, int error_index, pid_t error_pid,
                                     outcome_list outcomes)
    : std::runtime_error(text), index_(error_index), pid_(error_pid),
      outcomes_(or_none(std::move(outcomes))) {}

process_exception::~process_exception() = default;

const std::vector<outcome>& process_exception::outcomes() const noexcept { return *outcomes_; }

const outcome& process_exception::failed() const {
    if (const auto* worker = outcome_of(*outcomes_, index_))
        return *worker;
    throw std::logic_error("cohort: failed: no worker has failed");
}

std::string process_exception::last_words() const {
    const auto* const worker = outcome_of(*outcomes_, index_);
    return worker == nullptr ? std::string() : worker->last_words();
}

process_raised_exception::process_raised_exception(const std::string& text, int error_index,
                                                   pid_t error_pid, outcome_list outcomes,
                                                   error_record error)
    : process_exception(text, error_index, error_pid, std::move(outcomes)),
      error_(std::make_shared<const error_record>(std::move(error))) {}

process_raised_exception::~process_raised_exception() = default;

process_exited_exception::process_exited_exception(const std::string& text, int error_index,
                                                   pid_t error_pid, outcome_list outcomes,
                                                   exit_status status)
    : process_exception(text, error_index, error_pid, std::move(outcomes)), status_(status) {}

process_exited_exception::~process_exited_exception() = default;

group_stopped::group_stopped(outcome_list outcomes)
    : process_exception("the group was stopped", -1, 0, std::move(outcomes)) {}

group_stopped::group_stopped(const std::string& text, outcome_list outcomes)
    : process_exception(text, -1, 0, std::move(outcomes)) {}

group_stopped::~group_stopped() = default;

group_timed_out::group_timed_out(outcome_list outcomes, std::chrono::steady_clock::duration limit)
    : group_timed_out(report_of(outcomes, limit)) {}

group_timed_out::group_timed_out(std::shared_ptr<const cohort::report> all)
    : group_stopped("the group was stopped after its time limit of " +
                        base::duration_text(*all->time_limit),
                    outcome_list(all, &all->outcomes)),
      report_(std::move(all)) {}

group_timed_out::~group_timed_out() = default;

spawn_error::spawn_error(std::error_code code, const std::string& text, int error_index,
                         std::string stage)
    : std::system_error(code, text), index_(error_index),
      stage_(std::make_shared<const std::string>(std::move(stage))),
      text_(
          std::make_shared<const std::string>(with_index(std::system_error::what(), error_index))) {
}

spawn_error::~spawn_error() = default;

const char* spawn_error::what() const noexcept { return text_->c_str(); }

struct reach_error::details {
    std::string host;
    std::string stage;
    std::string words;
    std::string what;
};

reach_error::reach_error(std::error_code code, const std::string& text, const std::string& host,
                         const std::string& stage, const std::string& words)
    : std::system_error(code, text),
      details_(std::make_shared<const details>(
          details{host, stage, words,
                  fmt::format("cohort: host {} was not reached ({}): {}{}{}", host, stage,
                              std::system_error::what(), words.empty() ? "" : "\n", words)})) {}

reach_error::~reach_error() = default;

const std::string& reach_error::host() const noexcept { return details_->host; }
const std::string& reach_error::stage() const noexcept { return details_->stage; }
const std::string& reach_error::last_words() const noexcept { return details_->words; }
const char* reach_error::what() const noexcept { return details_->what.c_str(); }

host_lost::host_lost(const std::string& text, int error_index, pid_t error_pid,
                     outcome_list outcomes, const std::string& host)
    : process_exception(text, error_index, error_pid, std::move(outcomes)),
      host_(std::make_shared<const std::string>(host)) {}

host_lost::~host_lost() = default;

}  // namespace cohort

// Of pools.
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
