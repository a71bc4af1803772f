// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/starts/cpu_places.hpp"
#include "group/supervisor/result_descriptors.hpp"
#include "group/supervisor/usage_looks.hpp"
#include "group/supervisor/worker_process.hpp"

#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

namespace cohort::groups {

/// The workers of a group that live, or whose records are being read. A member of the group's
/// state; belongs to the engine's thread.
class live_workers {
public:
    struct worker {
        std::shared_ptr<worker_process> process;
        cpu_places::lease cpus;                     // null: it has no part of its own
        std::optional<result_descriptors> results;  // if its result may hold some
        int end = 0;                                // its number in outcomes_
        bool is_read = false;    // it has exited or was given up, and its record is being read
        bool is_counted = true;  // the lifecycle has not given it up
    };

    worker& add(int index, std::shared_ptr<worker_process> process);
    worker& at(int index) { return workers_.at(index); }
    worker take(int index);

    /// Looks which of them are exiting, the first time that it is called.
    void look_which_end() noexcept;

    void signal(int signo);
    void signal(int index, int signo);  // does nothing if the worker has ended
    void send_stop_signal(int signo);
    void send_kill();
    /// Stops every worker, so that all can start again.
    void stop_to_restart();
    /// All are stopped because of a limit, see worker_process::note_cut_short().
    void note_cut_short(const cut_short& why);

    /// For a look at what they use, see worker_process::to_be_looked_at().
    std::vector<looked_at> to_be_looked_at(std::error_code& error) const;
    /// Those that have not ended. The lifecycle counts them no more.
    std::vector<int> uncount();

private:
    std::map<int, worker> workers_;  // by index
    bool has_looked_ = false;
};

}  // namespace cohort::groups
