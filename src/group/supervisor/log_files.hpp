// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/runtime/runtime.hpp"
#include "output/streams/group_streams.hpp"

#include <cohort/outcome.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::groups {

/// Writes what options::logs() keeps of the ends of a group's workers: error.json of each that left
/// an error, and the group's report.json. Another thread writes, because a disk may not answer.
/// Belongs to the engine's thread.
class log_files {
public:
    /// Called once, on the engine's thread, when the file is written or the time is up. `note` says
    /// what went wrong; empty: nothing.
    using listener = base::callback<void(const std::string& note)>;

    using duration = std::chrono::steady_clock::duration;

    log_files(loop::runtime& runtime, std::shared_ptr<output::group_streams> streams,
              duration timeout)
        : runtime_(runtime), streams_(std::move(streams)), timeout_(timeout) {}

    /// Whether write_error() may be called: hosts write the errors of their workers themselves.
    bool takes_errors() const noexcept {
        return !is_forgotten_ && !streams_->routes().log_directory.empty();
    }
    /// The directory will be removed.
    void forget() noexcept { is_forgotten_ = true; }
    bool is_forgotten() const noexcept { return is_forgotten_; }
    void write_error(std::shared_ptr<const outcome> worker, listener then);
    /// @param group  makes the report; called by the thread that writes
    void write_report(base::callback<const report&()> group, listener then);
    /// Removes all that the start of the group has made, because it failed.
    void remove(listener then);

private:
    using opener = base::callback<base::unique_fd(std::error_code&)>;

    std::string run_directory() const;
    void write(std::string path, opener open, base::callback<std::string()> text, listener then);
    /// @param task  returns what went wrong; empty: nothing
    void run(std::string path, duration longest, base::callback<std::string()> task, listener then);

    loop::runtime& runtime_;
    std::shared_ptr<output::group_streams> streams_;
    duration timeout_;
    bool is_forgotten_ = false;
};

}  // namespace cohort::groups
