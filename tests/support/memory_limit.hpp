// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace cohort::test {

/// While it lives this process, and none of its workers, can take no more than this much memory.
class memory_limit {
public:
    explicit memory_limit(std::size_t more) {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        ::getrlimit(RLIMIT_AS, &before_);
        const rlimit now{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more,
                         before_.rlim_max};
        ::setrlimit(RLIMIT_AS, &now);
    }
    memory_limit(const memory_limit&) = delete;
    memory_limit& operator=(const memory_limit&) = delete;
    ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

}  // namespace cohort::test
