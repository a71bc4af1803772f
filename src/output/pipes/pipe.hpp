// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::output {

/// A pipe(2) between this process and a worker; both ends close-on-exec, numbered 3 or higher. Only
/// our end never blocks: O_NONBLOCK belongs to the end, and the worker's must be as programs
/// expect.
struct worker_pipe {
    base::unique_fd ours;
    base::unique_fd theirs;
    std::size_t capacity = 0;  // in bytes, as it was made: the worker can change it
};

enum class pipe_use { worker_writes, worker_reads };

/// @param size  capacity in bytes; 0: the kernel's default, 64 KiB. A wish: the kernel may refuse
///              more than its limits for a user (pipe-user-pages-soft), which is no error.
[[nodiscard]] worker_pipe make_worker_pipe(pipe_use use, std::size_t size, std::error_code& error);

/// Opens the write end anew for reading and writing, so that a worker that outlives this process
/// gets no SIGPIPE. Without /proc the end stays what it is.
void open_for_both(base::unique_fd& write_end) noexcept;

/// How many bytes are in the pipe. Where the kernel does not say (a filter denies FIONREAD): how
/// many there may be.
[[nodiscard]] std::size_t most_bytes_in(int fd) noexcept;

/// Makes sealed files in memory with the text that workers read as their standard input. All
/// workers with the same text share its memory, but each has an offset of its own.
class input_files {
public:
    /// A descriptor for one worker, to be read from the text's beginning.
    [[nodiscard]] base::unique_fd make(const std::shared_ptr<const std::string>& text,
                                       std::error_code& error);

private:
    std::shared_ptr<const std::string> text_;
    base::unique_fd file_;
};

}  // namespace cohort::output
