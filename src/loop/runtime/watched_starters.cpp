// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/watched_starters.hpp"

#include <chrono>
#include <utility>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

/// If a start takes longer than this while others wait, another starter takes over.
constexpr auto hung_start_after = 1s;

}  // namespace

void watched_starters::submit(std::shared_ptr<start_job> job) {
    if (starters_.submit(std::move(job)))
        watch();
}

void watched_starters::watch() {
    if (is_watched_.exchange(true))
        return;
    watcher_.post([this] {
        watcher_.timer().at(watcher_.now() + hung_start_after, [this] {
            is_watched_ = false;
            if (starters_.take_over_if_hung(watcher_.now() - hung_start_after))
                watch();
        });
    });
}

}  // namespace cohort::loop
