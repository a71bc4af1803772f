// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/outcome.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// All that is known of the end of one worker. The parts of the outcome stay apart until somebody
/// asks for it, because putting them together copies the worker's texts.
struct ended_worker {
    std::shared_ptr<const outcome> left;  // without the members below; null: it is not yet known
    captured out;
    captured err;
    std::string note;       // what is to be added to the note of the outcome
    bool restarts = false;  // another attempt follows
    bool victim = false;    // as in groups::verdict, and so is event_time
    std::chrono::steady_clock::time_point event_time;
    std::vector<std::shared_ptr<const ended_worker>> past;  // the attempts before this one

    /// A new outcome. Takes as long as the worker's texts are long.
    outcome whole() const;

private:
    outcome without_history() const;
};

/// Whether it takes no time worth speaking of to destroy what the worker has left.
bool is_small(const ended_worker& worker) noexcept;

/// The report of a group with these outcomes.
cohort::report report_with(std::vector<outcome> outcomes);

/// @param more  empty: nothing is added
void add_note(std::string& notes, const std::string& more);

class group_end;
/// Whether it takes no time worth speaking of to destroy what all its workers have left.
bool is_small(const group_end& end) noexcept;

/// The end of a group.
class group_end {
public:
    /// @param workers  all that have ended, in any order
    explicit group_end(std::vector<std::shared_ptr<const ended_worker>> workers);

    bool stopped = false;                                              // a stop was requested
    std::optional<std::chrono::steady_clock::duration> reached_limit;  // its time was up
    int not_started = 0;  // how many of its workers have no outcome
    std::string name;     // of the group
    std::vector<std::string> hosts;  // that it ran on; empty: this machine
    std::optional<std::chrono::steady_clock::duration> time_limit;
    int first_failure = -1;   // index into the outcomes
    std::string stderr_tail;  // what that worker wrote last to stderr, if it was captured

    /// Where the outcome of this worker is among the outcomes; -1: it has none.
    int place_of(int index) const;
    /// Keeps the last words of the worker that failed first, if one has.
    void keep_last_words();
    /// By index.
    const std::vector<std::shared_ptr<const ended_worker>>& workers() const noexcept {
        return workers_;
    }
    /// Made by the first call, which takes as long as the texts of all workers are long. Any thread
    /// except the engine's, and not before the members above are set.
    const cohort::report& report() const;

private:
    friend bool is_small(const group_end& end) noexcept;

    std::vector<std::shared_ptr<const ended_worker>> workers_;
    mutable std::mutex mutex_;
    mutable std::optional<cohort::report> report_;
};

}  // namespace cohort::detail::inline v0_1
