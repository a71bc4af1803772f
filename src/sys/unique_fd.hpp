// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

namespace cohort::sys {

/// Owns a descriptor; closes it. An `int fd` elsewhere only borrows.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset(int fd = -1) noexcept;  // keeps errno

private:
    int fd_ = -1;
};

}  // namespace cohort::sys
