// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/watched_starters.hpp"

#include <utility>

namespace cohort::loop {

void watched_starters::submit(std::shared_ptr<start_job> job) {
    if (starters_.submit(std::move(job)))
        watch();
}

void watched_starters::watch() {
    if (!is_watched_.exchange(true))
        watcher_.post([this] { look_at(watcher_.now() + starters::patience); });
}

void watched_starters::look_at(starters::time_point when) {
    watcher_.timer().at(when, [this] {
        is_watched_ = false;
        if (const auto next = starters_.take_over_if_hung(watcher_.now()))
            if (!is_watched_.exchange(true))
                look_at(*next);
    });
}

}  // namespace cohort::loop
