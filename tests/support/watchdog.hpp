// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort::test {

/// The longest time for a case: far more than any needs, and four times that under a sanitizer.
std::chrono::seconds generous_bound() noexcept;

/// Ends the test program if a case hangs: if this object still lives after `bound`. Prints the
/// case's name, the threads and their stacks (if gdb is there), and what the children do.
class watchdog {
public:
    explicit watchdog(std::chrono::seconds bound = generous_bound());
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

private:
    void watch(std::chrono::seconds bound);

    std::mutex mutex_;
    std::condition_variable changed_;
    bool runs_ = false;
    bool done_ = false;
    std::thread thread_;
};

}  // namespace cohort::test
