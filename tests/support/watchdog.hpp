// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort::test {

/// The longest that a case may take: far more than any needs, four times that under a sanitizer.
std::chrono::seconds generous_bound() noexcept;

/// While it lives, a case that hangs ends the test program after `bound`: with the case's name, its
/// threads and their stacks (where gdb is there), and what its children do.
class watchdog {
public:
    explicit watchdog(std::chrono::seconds bound = generous_bound());
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

private:
    void watch(std::chrono::seconds bound);

    std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace cohort::test
