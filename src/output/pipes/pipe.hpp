// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

/// Takes what is read from a stream. Called on the loop's thread.
class byte_sink {
public:
    virtual ~byte_sink() = default;
    virtual void take(std::string_view bytes) = 0;
    /// What was left out before the next bytes. What came before them ends there.
    virtual void lose(std::uint64_t lines, std::uint64_t bytes) { (void)lines, (void)bytes; }
    /// Whether more may be read now. If not, the sink calls stream_reader::go_on() later.
    virtual bool has_room() = 0;
    /// A turn of this stream is over: what room there is now is for the next stream that waits.
    virtual void leave_room() = 0;
    /// Nothing more comes. Called once. @param why  an error of the last read, or none
    virtual void end(std::error_code why) = 0;
};

/// Reads one stream of one worker into a sink. Belongs to the loop's thread.
class stream_reader {
public:
    virtual ~stream_reader() = default;
    /// Begins to read.
    virtual void begin() = 0;
    /// Reads on after the sink had no room. @return whether it does; else the room is for others
    virtual bool go_on() = 0;
    /// The worker has ended: takes what it has left, even over the sink's room, then ends the
    /// stream and calls `then`.
    virtual void worker_ended(loop::task then) = 0;
    /// To be called now and then while the stream ends: ends it if nothing goes on.
    virtual void look() = 0;
};

/// Feeds the standard input of one worker. Texts are written one after another. Belongs to the
/// loop's thread.
class stream_writer {
public:
    using listener = base::callback<void(std::error_code)>;

    virtual ~stream_writer() = default;
    /// Calls `then` when the text is over: with no error, with EPIPE when the worker reads no more,
    /// or with ECANCELED.
    /// @param id  names the text for cancel()
    virtual void write(std::uint64_t id, std::string text, listener then) = 0;
    /// Drops what was not yet taken of a text. @return whether it was here
    virtual bool cancel(std::uint64_t id) = 0;
    /// Ends the input when all texts that were given before are over.
    virtual void close_after_all() = 0;
    /// Nobody reads any more: every text is over, with EPIPE.
    virtual void end() = 0;
};

}  // namespace cohort::output
