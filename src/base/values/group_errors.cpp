// SPDX-License-Identifier: BSL-1.0
#include <cohort/errors.hpp>

#include "base/values/group_end.hpp"
#include "base/values/quantity.hpp"

#include <algorithm>
#include <utility>

// Constructors may throw; copying does not, because copies share their contents. The destructors
// are here so that each class has its type information in one module, where a catch in another
// module finds it.
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

}  // namespace cohort
