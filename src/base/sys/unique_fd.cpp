// SPDX-License-Identifier: BSL-1.0
#include "base/sys/unique_fd.hpp"

#include <atomic>
#include <cerrno>

#include <unistd.h>

namespace cohort::base {
namespace {

constinit std::atomic<table_number> current_table{0};

}  // namespace

table_number descriptor_table() noexcept { return current_table.load(std::memory_order_relaxed); }

// The copy has one thread only.
void begin_descriptor_table() noexcept { current_table.fetch_add(1, std::memory_order_relaxed); }

void unique_fd::reset(int fd) noexcept {
    const int old = release();
    fd_ = fd;
    table_ = descriptor_table();
    if (old < 0)
        return;
    const int saved = errno;
    // Not repeated after EINTR, because Linux has freed the number by then, close(2).
    ::close(old);
    errno = saved;
}

}  // namespace cohort::base
