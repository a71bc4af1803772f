// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"
#include "output/lines/backlog.hpp"
#include "output/lines/splitter.hpp"
#include "output/targets/call_threads.hpp"
#include "output/targets/files.hpp"

#include <cohort/detail/line_run.hpp>
#include <cohort/detail/sink.hpp>
#include <cohort/output.hpp>
#include <cohort/policies.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace cohort::loop {
class engine;
}

namespace cohort::output {

/// A value that a process has once, made with its loop.
template <class T>
struct of_loop {
    const loop::engine& loop;
    T value;
};

/// The value of the process whose loop this is. Made if need be and leaked on purpose. A forked
/// copy of this process has another loop, because the threads are its parent's.
template <class T>
T& latest_of(std::atomic<of_loop<T>*>& latest, loop::engine& loop) {
    auto* seen = latest.load();
    while (!seen || &seen->loop != &loop) {
        std::unique_ptr<of_loop<T>> fresh(new of_loop<T>{loop, T(loop)});
        if (latest.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return seen->value;
}

/// How text looks on this program's stdout or stderr.
[[nodiscard]] line_style console_style(int fd, bool no_color) noexcept;

/// What writes to one of this program's own streams, for all groups. One thread, so that lines stay
/// whole, and so that a stream that takes nothing holds up one thread only.
struct console_writer {
    explicit console_writer(loop::engine& loop) : thread(loop, std::chrono::hours(1), 1) {}
    /// That of a process, whose engine is `loop`. Made if need be and leaked on purpose.
    /// @param fd  STDOUT_FILENO or STDERR_FILENO
    static console_writer& of(loop::engine& loop, int fd);

    call_threads thread;
    std::atomic<std::size_t> of_ended = 0;  // bytes that wait although their groups have ended
};

/// The lines that a console keeps of one target after the end of its group, as long as this object
/// lives. Bounded, because groups that end would else fill memory with lines that no console takes.
class kept_lines {
public:
    explicit kept_lines(console_writer* console) noexcept : console_(console) {}
    kept_lines(const kept_lines&) = delete;
    kept_lines& operator=(const kept_lines&) = delete;
    ~kept_lines();

    /// Null: the target is no console.
    console_writer* console() const noexcept { return console_; }
    bool are_counted() const noexcept { return bytes_ != 0; }
    /// Counts them, once. @return whether the console may keep them
    [[nodiscard]] bool count(std::uint64_t bytes) noexcept;

private:
    console_writer* const console_;
    std::size_t bytes_ = 0;
};

struct target_settings {
    std::string name;  // for notes: "logs/0.log", "stdout"
    /// For the bytes of one stream as they are: no timestamps, ends_lines false, no tags.
    line_style style{};
    std::optional<rotated_path> rotate{};
    std::size_t buffer = detail::default_buffer;  // in bytes of lines that are not yet written
    call_threads* threads = nullptr;    // write the target; null: call_threads::of() the loop
    console_writer* console = nullptr;  // writes the target instead; null: it is none
};

/// One place that workers' lines are written to: a file, or this program's stdout or stderr. Lines
/// wait in a bounded queue. Threads that other targets share write them, by a write(2) that may
/// wait. Such a thread shares this object and holds no lock that others take while it writes, so a
/// write that hangs holds up nobody.
///
/// A console that takes nothing keeps the lines of groups that have ended, up to a bound. What does
/// not fit is left out.
///
/// After an error of a write the target is given up: it drops what it has and what comes, and says
/// why by trouble().
///
/// All members are for the thread of `loop`; close() and what follows it here for any thread.
class target final : public std::enable_shared_from_this<target> {
public:
    /// A target that owns its file.
    static std::shared_ptr<target> make(loop::engine& loop, base::unique_fd file,
                                        target_settings settings);
    /// A target on a descriptor of the application, which stays as it is: open, with its flags.
    static std::shared_ptr<target> make(loop::engine& loop, int borrowed, target_settings settings);

    target(const target&) = delete;
    target& operator=(const target&) = delete;

    /// What stands before each line of a worker's stream. Without it: nothing.
    /// @param tag  see line_formatter::set_tag()
    void set_tag(int index, cohort::stream from, std::string tag);
    /// Adds lines, also when there is no room. Without memory for them they are left out.
    void add(std::shared_ptr<const detail::line_run> run, cohort::when_full full) noexcept;
    /// Counts lines as dropped instead of adding them.
    void leave_out(const detail::line_run& run) noexcept;
    /// Counts as dropped what never came here.
    void lose(int index, int attempt, cohort::stream from, const detail::loss& lost) noexcept;
    /// The stream has ended. Reports a loss that no line of it follows.
    void end_stream(int index, int attempt, cohort::stream from, loop::time_point at) noexcept;

    /// True also when the target was given up.
    bool has_room() const;
    /// Calls `then` once, on the loop, when there is room. Never before it returns.
    void when_room(loop::task then);
    /// Calls `then` once, on the loop, when all that was added before has been written, or was left
    /// out. Never before it returns.
    void when_written(loop::task then);
    /// Calls `then` once, on the loop, when the lines that were read until `until` have been
    /// written, or were left out. Never before it returns.
    void when_written(loop::time_point until, loop::task then);

    /// What is added from now on is left out, and trouble() says so. What is in the queue is
    /// written, then the file is closed. Later calls have no effect.
    void close();
    /// Takes lines again, behind those that are not yet written. @return false: all are written,
    /// and the file is closed; or the target was given up
    [[nodiscard]] bool reopen() noexcept;

    /// What went wrong, for a note: "logs/0.log: No space left on device after 12,288 bytes".
    /// Empty: nothing did.
    std::string trouble() const;
    /// Unwritten bytes, for outcome::note() after flush_timeout: "stdout: 12,288 bytes are not yet
    /// written". Empty: all is written.
    std::string pending() const;
    /// trouble(), or if there is none, pending().
    std::string note() const;

private:
    struct waiter {
        std::optional<loop::time_point> written_until;  // empty: waits for room
        loop::task then;
    };

    target(loop::engine& loop, target_settings settings);

    // On the loop:
    void await(waiter waits);
    void notify_waiters();

    // On any thread:
    void wake_writer() noexcept;
    void try_again_later() noexcept;
    bool leaves_out_rest() noexcept;
    void close_file();

    // On the writer:
    bool step(std::string& bytes) noexcept;
    detail::line_batch next_batch();
    void write(detail::line_batch batch, std::string& bytes) noexcept;
    void give_up(std::error_code why) noexcept;
    void notify_later() noexcept;

    // With the mutex held:
    bool is_met(const waiter& waits) const noexcept;

    loop::engine& loop_;
    const std::string name_;
    kept_lines kept_;
    call_threads& threads_;

    // The writer's:
    std::optional<written_file> file_;  // set by make()
    line_formatter formatter_;

    mutable std::mutex mutex_;
    backlog lines_;
    std::vector<std::pair<line_formatter::source, std::string>> new_tags_;
    std::vector<waiter> waiters_;           // their tasks are touched on the loop only
    bool is_submitted_ = false;             // to threads_
    bool tries_again_ = false;
    bool is_over_ = false;  // the file is closed, or will be by the thread that is going
};

}  // namespace cohort::output
