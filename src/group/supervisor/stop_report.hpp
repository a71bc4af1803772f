// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/supervisor/record_reader.hpp"
#include "group/supervisor/stacks_answer.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/error_record.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::groups {

/// What a worker is doing when it is about to be stopped: what /proc says of it and, if it is a
/// function that can answer, the stacks that it reports itself. Belongs to the engine's thread.
class stop_report : public std::enable_shared_from_this<stop_report> {
public:
    /// @param stacks  the read end of the pipe for the worker's stacks; may be empty
    stop_report(loop::runtime& runtime, std::shared_ptr<const detail::group_settings> settings,
                record_kind kind, pid_t pid, base::unique_fd stacks);

    /// Begins to look. Only the first call counts.
    /// @param ask   asks the worker for its stacks; returns false if it can't answer
    /// @param then  called once, when the report is complete or its time is up, unless end() is
    ///              called first
    void begin(base::callback<bool()> ask, base::callback<void()> then);
    /// It is too late to look: the worker has ended, or SIGKILL was sent to it.
    void end() noexcept;

    /// Whether the worker's answer has come, but is not yet a part of the report.
    bool is_being_parsed() const noexcept { return stacks_ && stacks_->is_being_parsed(); }
    std::vector<activity> take_activities() noexcept { return std::move(activities_); }
    /// What the outcome says if there was no time to look; else empty.
    std::string note() const;

private:
    void look();
    void saw(std::vector<activity> activities, bool answers);
    void ask_for_stacks();
    void complete();

    loop::runtime& runtime_;
    const std::shared_ptr<const detail::group_settings> settings_;
    const record_kind kind_;
    const pid_t pid_;
    std::shared_ptr<stacks_answer> stacks_;  // null: it can't be asked for its stacks
    base::callback<bool()> ask_;
    base::callback<void()> then_;                  // empty: not begun, or over
    std::optional<groups::time_point> ask_until_;  // empty: not begun
    std::vector<activity> activities_;
    bool not_seen_ = false;  // the stop signal was due before /proc was read
};

}  // namespace cohort::groups
