// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <memory>
#include <mutex>
#include <vector>

#include <sys/types.h>

namespace cohort::loop {

class runtime;

/// Descriptors that a forked copy of this process must not hold: a worker that waits for the end of
/// its input would wait for the copy too. A child handler of pthread_atfork(3) closes them.
class uncopied_descriptors {
public:
    /// Locked by a fork, see runtime::begin_fork().
    std::mutex& mutex() noexcept { return mutex_; }

    /// Owns `fd` from now on. In a copy of `owner` the last owner closes nothing.
    static std::shared_ptr<base::unique_fd> own(runtime& owner, base::unique_fd fd);
    /// In the copy, by the thread that has forked: closes them all.
    void close_in_copy() noexcept;

private:
    /// The file shows whether the number is still that descriptor: it is closed before its entry is
    /// removed, so that no fork comes in between.
    struct entry {
        int fd;
        dev_t device;
        ino_t file;
    };

    std::mutex mutex_;
    std::vector<entry> entries_;
};

}  // namespace cohort::loop
