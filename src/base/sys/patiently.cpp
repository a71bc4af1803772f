// SPDX-License-Identifier: BSL-1.0
#include "base/sys/patiently.hpp"

#include <thread>

namespace cohort::base {

void wait_for_memory::go_on() {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    if (!until_)
        until_ = now + longest_wait_for_memory;
    else if (now >= *until_)
        throw no_memory();
    std::this_thread::sleep_for(1ms);
}

}  // namespace cohort::base
