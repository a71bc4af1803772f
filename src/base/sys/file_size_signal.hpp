// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <csignal>

namespace cohort::base {

/// While such an object lives, a call of this thread that meets RLIMIT_FSIZE fails with EFBIG and
/// nothing else. Else SIGXFSZ, which comes with the error, would end the process.
/// Async-signal-safe.
class no_file_size_signal {
public:
    no_file_size_signal() noexcept;
    no_file_size_signal(const no_file_size_signal&) = delete;
    no_file_size_signal& operator=(const no_file_size_signal&) = delete;
    ~no_file_size_signal();  // leaves errno

private:
    sigset_t before_;  // the thread's mask
    bool was_pending_;
};

}  // namespace cohort::base
