// SPDX-License-Identifier: BSL-1.0
#include "loop/engine/inbox.hpp"

namespace cohort::loop {

void inbox::run() {
    base::patient_vector<task> tasks;
    // Tasks may post tasks without end: a flooded pipe does where the reactor refuses to watch it.
    constexpr int most_rounds = 16;
    for (int round = 0; round < most_rounds; ++round) {
        {
            const std::lock_guard lock(mutex_);
            tasks.swap(tasks_);
            is_woken_ = false;
        }
        if (tasks.empty())
            return;
        for (auto& t : tasks)
            t();
        tasks.clear();
    }
}

}  // namespace cohort::loop
