// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace cohort::base {

/// The descriptor table of this process, as a number. It is another one in a worker that is a
/// forked copy, because the copy closes all descriptors of its parent first. A number that an
/// object of the parent holds then means nothing, or another file.
using table_number = std::uint32_t;
table_number descriptor_table() noexcept;
/// Called in a forked copy when it has closed the descriptors of its parent, and before it opens
/// any of its own.
void begin_descriptor_table() noexcept;

/// Owns a descriptor and closes it. An `int fd` elsewhere only borrows. In a forked copy that has
/// closed the descriptors of its parent, an owner that was made by the parent is empty.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_(fd), table_(descriptor_table()) {}
    unique_fd(unique_fd&& other) noexcept : unique_fd(other.release()) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int get() const noexcept { return table_ == descriptor_table() ? fd_ : -1; }
    explicit operator bool() const noexcept { return get() >= 0; }
    int release() noexcept {
        const int fd = get();
        fd_ = -1;
        return fd;
    }
    void reset(int fd = -1) noexcept;  // keeps errno

private:
    int fd_ = -1;
    table_number table_ = 0;
};

}  // namespace cohort::base
