// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/values/group_end.hpp"
#include "group/lifecycle/machine.hpp"
#include "group/lifecycle/verdict.hpp"
#include "group/outcomes/outcomes.hpp"
#include "group/services/services.hpp"
#include "group/state/published_ends.hpp"
#include "group/state/snapshot.hpp"
#include "group/supervisor/log_files.hpp"
#include "loop/waits/waiters.hpp"
#include "output/streams/group_streams.hpp"

#include <cohort/detail/border.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort::groups {

/// Gathers the parts of the outcomes of a group's workers, each on the thread that may take long
/// for it, and hands the outcomes to those who wait for them. A member of the group's state.
/// Belongs to the engine's thread.
class outcome_publisher {
public:
    outcome_publisher(services& of, std::shared_ptr<const detail::group_settings> settings,
                      std::shared_ptr<output::group_streams> streams, const machine& life,
                      snapshot& shown);

    /// Before all other calls.
    /// @param group    kept by what goes on on other threads
    /// @param changed  called when an outcome was published, or has got its last part
    /// @param hosts    on which the group runs; empty: this machine
    void begin(std::weak_ptr<const void> group, base::callback<void()> changed,
               std::vector<std::string> hosts = {});

    /// A number for the end of an attempt.
    int new_end() noexcept { return ends_++; }
    /// Notes that this attempt has ended. Outcomes are published in the order of these calls.
    void add(int end);
    /// Sets what the worker has left. Symbolizes it on another thread.
    /// @param restarts  whether another attempt follows: then it is no failure of the group
    void set(int end, outcome left, verdict judged, bool restarts = false);
    /// The same for an outcome that has its names already.
    void set_named(int end, std::shared_ptr<const outcome> left, verdict judged, bool restarts);
    void set_output(int end, output::stream_end printed);
    /// Adds to the note of a worker's last outcome, which is published, for the report.
    void note_late(int index, const std::string& note) { published_.add_note(index, note); }
    /// Another attempt of these workers follows, although the last one was set without.
    void note_restarts(const std::vector<int>& indices);
    /// How many ends are not published.
    int waiting() const noexcept { return outcomes_.waiting(); }
    /// How many workers have their last outcome.
    int published() const noexcept { return published_.complete(); }

    void await_next(detail::receiver to, std::optional<detail::time_point> until);
    bool stop_waiting(detail::operation_id id) { return waiters_.stop_waiting(id); }
    /// Ends the waits, because no more outcomes come.
    void end_waits() { waiters_.complete_all(detail::completion()); }

    /// The end of the group, if what is published is all.
    std::shared_ptr<detail::group_end> end() const;
    /// The directory of logs() will be removed: writes nothing there from now on.
    void forget_logs() noexcept;
    bool forgets_logs() const noexcept { return logs_ && logs_->is_forgotten(); }
    /// Removes the directory of logs() because the start has failed, then calls `then`.
    void remove_logs(base::callback<void()> then);

private:
    using shared_worker = std::shared_ptr<detail::ended_worker>;

    shared_worker& of(int end) { return unpublished_.at(end).worker; }
    void set_verdict(int index, verdict judged) {
        verdicts_[static_cast<std::size_t>(index)] = std::move(judged);
    }
    void note_left(int end, std::shared_ptr<const outcome> left, verdict judged, bool restarts);
    void symbolize(int end);
    void set_symbols(int end, std::shared_ptr<const outcome> worker);
    void note_part(int end, part p);
    void write_log(int end);
    void write_report();
    void go_on();
    void hand_out();
    int first_of_failures() const;
    std::shared_ptr<detail::group_end> end_of(
        std::vector<std::shared_ptr<const detail::ended_worker>> workers) const;

    loop::runtime& runtime_;
    const std::shared_ptr<const detail::group_settings> settings_;
    protocol::names& names_;
    const machine& life_;
    snapshot& shown_;
    std::weak_ptr<const void> group_;
    base::callback<void()> changed_;
    std::vector<std::string> hosts_;
    std::optional<log_files> logs_;  // with options::logs()
    outcomes outcomes_;
    struct unpublished {
        shared_worker worker;
        std::optional<loop::timer_id> limit;  // of symbolizing
    };
    int ends_ = 0;
    std::map<int, unpublished> unpublished_;           // by the numbers of their ends
    std::vector<verdict> verdicts_;                    // by index
    published_ends published_;
    loop::waiters waiters_;
};

}  // namespace cohort::groups
