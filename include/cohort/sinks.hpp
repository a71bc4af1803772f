// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/argument_text.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/count.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/sink.hpp>
#include <cohort/policies.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

// Where the output of workers goes, and where their input comes from: the arguments of stdout_to,
// stderr_to, output_to, stdin_from and options::logs. Each class is a value: it copies and
// compares. Each setter checks its argument and returns the object itself. Distinct objects may be
// used by several threads.
//
// A pattern is text in which {index} stands for the worker's index, {size} for the number of
// workers, {group} for the name of the group (options::name), {attempt} for the number of the start
// and {host} for the worker's machine; "{{" and "}}" stand for braces. A number may have a
// format of fmt, as in "{index:03}".
namespace cohort {

namespace detail::inline v0_1 {
struct sink_access;
}

/// A stream of the worker is that of this program. As a source of input: its standard input. If it
/// is non-blocking here (Asio makes it so), a worker that is started then gets the same pipe, FIFO
/// or terminal opened anew, which blocks. A socket can't be opened anew, so it is non-blocking in
/// the worker too.
class inherit {
public:
    inherit() = default;
    /// Always: it has no settings.
    friend bool operator==(const inherit&, const inherit&) = default;

private:
    friend struct detail::sink_access;
    detail::inherit_sink data_;
};

/// What the worker writes goes to /dev/null.
class discard {
public:
    discard() = default;
    /// Always: it has no settings.
    friend bool operator==(const discard&, const discard&) = default;

private:
    friend struct detail::sink_access;
    detail::discard_sink data_;
};

/// Standard error goes where standard output goes, through one pipe or file. What the worker writes
/// keeps its order; all of it is reported as stream::out. For stderr_to only.
/// @source `2>&1` of the shell
class merge {
public:
    merge() = default;
    /// Always: it has no settings.
    friend bool operator==(const merge&, const merge&) = default;

private:
    friend struct detail::sink_access;
    detail::merge_sink data_;
};

/// A file. Missing directories are made. A relative path is relative to the worker's working
/// directory. A path without {index} is one file for all workers, in which their lines stay whole.
/// A file that one worker alone writes, without rotate, tagged, timestamps and other sinks, is
/// opened by the worker itself. Other files are written by this process.
class COHORT_API file {
public:
    /// @param path  a pattern: a string, a literal or a std::filesystem::path
    /// @throws std::invalid_argument  the path is empty, has a NUL, or is no pattern
    explicit file(std::string path);

    /// Keeps what is in the file, and writes behind it.
    file& append() noexcept;
    /// Empties the file at the start of the group. This is the default.
    file& truncate() noexcept;
    /// Starts a new file before this one gets too large. No line is cut. `log.1` is what was `log`.
    /// @param bytes  the largest size; a file that cannot be renamed grows on, see outcome::note()
    /// @param keep   how many older files are kept; the files that are there take time, not this
    /// @throws std::invalid_argument  `bytes` is less than 1, or `keep` is less than 1
    template <std::integral Bytes>
    file& rotate(Bytes bytes, int keep = 5) {
        return set_rotation(detail::count_of("rotate", bytes), keep);
    }
    /// Writes "[{index}]: " before each line.
    file& tagged();
    /// Writes `tag` before each line.
    /// @param tag  a pattern
    /// @throws std::invalid_argument  the tag has a newline, or is no pattern
    file& tagged(std::string tag);
    /// Writes before each line, and before its tag, when it was read: "2026-11-22T14:03:07.123Z ".
    file& timestamps() noexcept;
    /// What happens when the worker writes faster than the file takes it. Default when_full::block.
    /// With drop_oldest, a line in the file says how much was left out.
    file& when_full(cohort::when_full what) noexcept;

    /// Whether all settings are equal.
    friend bool operator==(const file&, const file&) = default;

private:
    friend struct detail::sink_access;
    file& set_rotation(std::uint64_t bytes, int keep);
    detail::file_sink data_;
};

/// Keeps the first and the last bytes of a stream in memory, for outcome::out or outcome::err. It
/// never makes the worker wait.
class COHORT_API capture {
public:
    capture() = default;
    /// How many of the first bytes are kept. Default 16 KiB.
    /// @throws std::invalid_argument  `bytes` is negative, or head and tail exceed 1 GiB together
    template <std::integral Bytes>
    capture& head(Bytes bytes) {
        return set("head", detail::count_of("head", bytes), data_.tail);
    }
    /// How many of the last bytes are kept. Default 48 KiB.
    /// @throws std::invalid_argument  `bytes` is negative, or head and tail exceed 1 GiB together
    template <std::integral Bytes>
    capture& tail(Bytes bytes) {
        return set("tail", data_.head, detail::count_of("tail", bytes));
    }
    /// A worker that writes more bytes to the stream is stopped, alone: the stop signal, SIGKILL
    /// after options::grace_period. It has failed with cause::output_limit, unless it had ended by
    /// then. Its outcome has what was captured until its end. Default: no limit.
    /// @throws std::invalid_argument  `bytes` is negative
    template <std::integral Bytes>
    capture& at_most(Bytes bytes) {
        data_.at_most = detail::count_of("at_most", bytes);
        return *this;
    }

    /// Whether all settings are equal.
    friend bool operator==(const capture&, const capture&) = default;

private:
    friend struct detail::sink_access;
    capture& set(const char* setter, std::uint64_t head, std::uint64_t tail);
    detail::capture_sink data_;
};

/// Delivers the stream's lines to group::output and group::output_batch.
class COHORT_API lines {
public:
    lines() = default;
    /// How many bytes of lines may wait to be read. The buffer is the group's: of several sizes the
    /// largest counts. Default 1 MiB. With when_full::drop_oldest 16 MiB while somebody reads, that
    /// is until 16 MiB have come since the last line was taken, or since the start.
    /// @throws std::invalid_argument  `bytes` is less than 1 or than longest_line: set that first
    template <std::integral Bytes>
    lines& buffer(Bytes bytes) {
        return set_buffer(detail::count_of("buffer", bytes));
    }
    /// What happens when the buffer is full. Default when_full::drop_oldest, so that a worker whose
    /// lines nobody reads does not hang. output_line::lost_before and outcome::note() report what
    /// was dropped.
    lines& when_full(cohort::when_full what) noexcept;
    /// A longer line is cut, its rest is a line of its own. In bytes. Default 64 KiB.
    /// @throws std::invalid_argument  `bytes` is less than 1, or more than the buffer
    template <std::integral Bytes>
    lines& longest_line(Bytes bytes) {
        return set_longest(detail::count_of("longest_line", bytes));
    }

    /// Whether all settings are equal.
    friend bool operator==(const lines&, const lines&) = default;

private:
    friend struct detail::sink_access;
    static void check(const char* setter, std::uint64_t buffer, std::uint64_t longest);
    lines& set_buffer(std::uint64_t bytes);
    lines& set_longest(std::uint64_t bytes);
    detail::lines_sink data_;
};

/// Delivers the stream's bytes as they come to group::output and group::output_batch, not cut into
/// lines: for binary data.
class COHORT_API chunks {
public:
    chunks() = default;
    /// How many bytes may wait to be read. Default and group as for lines::buffer.
    /// @throws std::invalid_argument  `bytes` is less than 1
    template <std::integral Bytes>
    chunks& buffer(Bytes bytes) {
        return set_buffer(detail::count_of("buffer", bytes));
    }
    /// What happens when the buffer is full. Default when_full::drop_oldest.
    chunks& when_full(cohort::when_full what) noexcept;

    /// Whether all settings are equal.
    friend bool operator==(const chunks&, const chunks&) = default;

private:
    friend struct detail::sink_access;
    chunks& set_buffer(std::uint64_t bytes);
    detail::chunks_sink data_;
};

/// This program's stream of the same name, as it is at the start, line by line, tags before lines.
/// Of groups that have ended at most 16 MiB wait to be written there; what is more is left out.
class COHORT_API console {
public:
    console() = default;
    /// What stands before each line. Default "[{index}]: ".
    /// @param text  a pattern; may be empty
    /// @throws std::invalid_argument  the tag has a newline, or is no pattern
    console& tag(std::string text);
    /// Shows these workers only. What the others write goes to their other sinks, or nowhere.
    /// Replaces an earlier only().
    /// @throws std::invalid_argument  an index is negative, or no int
    template <std::integral... Indices>
    requires(sizeof...(Indices) > 0) console& only(Indices... indices) {
        std::set<int> shown;
        (shown.insert(index_of(std::in_range<int>(indices) ? static_cast<int>(indices) : -1)), ...);
        return show(std::move(shown), nullptr);
    }
    /// Shows the workers for whose index `shows` returns true. Replaces an earlier only(). It is
    /// called before the group starts, and what it throws leaves the start. Copies share it.
    /// @throws std::invalid_argument  `shows` is an empty std::function or a null pointer
    template <class Filter>
    requires(std::predicate<std::decay_t<Filter>&, int> &&
             !std::integral<std::decay_t<Filter>>) console& only(Filter&& shows) {
        static_assert(detail::safe_as_temporary<Filter>, "GCC 12: name the lambda first");
        return show(std::nullopt,
                    std::make_shared<const std::function<bool(int)>>(std::forward<Filter>(shows)));
    }
    /// What happens when a worker writes faster than the console takes it. Default
    /// when_full::block. With drop_oldest, a line says how much was left out.
    console& when_full(cohort::when_full what) noexcept;

    /// Whether all settings are equal. Two filters are equal if they are copies of one.
    friend bool operator==(const console&, const console&) = default;

private:
    friend struct detail::sink_access;
    static int index_of(int index);
    console& show(std::optional<std::set<int>> indices, detail::worker_filter filter);
    detail::console_sink data_;
};

/// The same text as standard input of each worker. The worker reads it from memory, and can seek.
class bytes {
public:
    /// @param text  any bytes; may be empty
    template <detail::text_like Text>
    explicit bytes(Text&& text)
        : data_{std::make_shared<const std::string>(std::forward<Text>(text))} {}
    /// Whether the texts are equal.
    friend bool operator==(const bytes&, const bytes&) = default;

private:
    friend struct detail::sink_access;
    detail::bytes_input data_;
};

/// A pipe as standard input, filled by group::write and ended by group::close_input.
class feed {
public:
    feed() = default;
    /// Always: it has no settings.
    friend bool operator==(const feed&, const feed&) = default;

private:
    friend struct detail::sink_access;
    detail::feed_input data_;
};

/// A directory for what a run leaves. `directory/run id/attempt_0/index/` has stdout.log,
/// stderr.log and the error of a failed worker, error.json; report.json stands beside attempt_0.
/// Workers that start again (options::restart) have these in attempt_1 and so on. Workers on hosts
/// have theirs there. A start that fails leaves nothing, so that the run id can be used again.
/// @source log_dir of torch elastic; differs: an earlier run is never deleted
class COHORT_API logs {
public:
    /// @param directory  made if need be; a string, a literal or a std::filesystem::path
    /// @throws std::invalid_argument  the path is empty or has a NUL
    explicit logs(std::string directory);
    /// The name of the run. Default: the name of the group, '_' and eight random letters.
    /// @throws std::invalid_argument  `text` is empty, "." or "..", or has a '/' or a NUL
    logs& run_id(std::string text);
    /// Whether all settings are equal.
    friend bool operator==(const logs&, const logs&) = default;

private:
    friend struct detail::sink_access;
    detail::log_settings data_;
};

}  // namespace cohort
