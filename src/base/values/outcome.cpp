// SPDX-License-Identifier: BSL-1.0
#include <cohort/exit_status.hpp>

#include "base/values/demangle.hpp"
#include "base/values/last_words.hpp"
#include "base/values/quantity.hpp"

#include <cohort/detail/line_run.hpp>
#include <cohort/error_record.hpp>
#include <cohort/errors.hpp>
#include <cohort/outcome.hpp>
#include <cohort/output.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace cohort {
namespace {

/// The name that Python's signal.Signals gives, null for a number without one. A table of our own:
/// glibc's sigabbrev_np is missing elsewhere, and numbers differ between architectures.
const char* name_of(int signo) noexcept {
    struct entry {
        int signo;
        const char* name;
    };
#define COHORT_SIGNAL(s)                                                                           \
    { s, #s }
    static constexpr entry names[] = {
        COHORT_SIGNAL(SIGHUP),    COHORT_SIGNAL(SIGINT),  COHORT_SIGNAL(SIGQUIT),
        COHORT_SIGNAL(SIGILL),    COHORT_SIGNAL(SIGTRAP), COHORT_SIGNAL(SIGABRT),
        COHORT_SIGNAL(SIGBUS),    COHORT_SIGNAL(SIGFPE),  COHORT_SIGNAL(SIGKILL),
        COHORT_SIGNAL(SIGUSR1),   COHORT_SIGNAL(SIGSEGV), COHORT_SIGNAL(SIGUSR2),
        COHORT_SIGNAL(SIGPIPE),   COHORT_SIGNAL(SIGALRM), COHORT_SIGNAL(SIGTERM),
        COHORT_SIGNAL(SIGCHLD),   COHORT_SIGNAL(SIGCONT), COHORT_SIGNAL(SIGSTOP),
        COHORT_SIGNAL(SIGTSTP),   COHORT_SIGNAL(SIGTTIN), COHORT_SIGNAL(SIGTTOU),
        COHORT_SIGNAL(SIGURG),    COHORT_SIGNAL(SIGXCPU), COHORT_SIGNAL(SIGXFSZ),
        COHORT_SIGNAL(SIGVTALRM), COHORT_SIGNAL(SIGPROF), COHORT_SIGNAL(SIGWINCH),
        COHORT_SIGNAL(SIGIO),     COHORT_SIGNAL(SIGPWR),  COHORT_SIGNAL(SIGSYS),
#ifdef SIGSTKFLT
        COHORT_SIGNAL(SIGSTKFLT),
#endif
    };
#undef COHORT_SIGNAL
    for (const entry& known : names)
        if (known.signo == signo)
            return known.name;
    // These two are no constants, because glibc keeps the first real-time signals for itself.
    if (signo == SIGRTMIN)
        return "SIGRTMIN";
    return signo == SIGRTMAX ? "SIGRTMAX" : nullptr;
}

}  // namespace

exit_status exit_status::from_code(int code) noexcept {
    return exit_status(kind::exited, code, false);
}

exit_status exit_status::from_signal(int signo, bool core_dumped) noexcept {
    return exit_status(kind::signaled, signo, core_dumped);
}

int exit_status::exit_code() const noexcept {
    switch (kind_) {
    case kind::exited:
        return value_;
    case kind::signaled:
        return -value_;
    case kind::unknown:
        break;
    }
    return -1;
}

std::string exit_status::signal_name() const {
    if (!signaled())
        return {};
    if (const char* name = name_of(value_))
        return name;
    return "<Unknown signal " + std::to_string(value_) + ">";
}

std::string to_string(const exit_status& status) {
    if (!status.known())
        return "unknown";
    if (status.exited())
        return "exit code " + std::to_string(status.exit_code());
    return "signal " + status.signal_name() + (status.core_dumped() ? " (core dumped)" : "");
}

std::string to_string(const error_record& e) {
    if (e.type.empty())
        return e.message;
    return e.message.empty() ? e.type : e.type + ": " + e.message;
}

std::string to_string(const stack_frame& f) {
    std::string text;
    if (!f.file.empty())
        text = fmt::format("File \"{}\", line {}", f.file, f.line);
    else
        text = fmt::format("Module \"{}\", offset {:#x}", f.module, f.offset);
    if (!f.function.empty())
        text += ", in " + f.function;
    if (f.inlined)
        text += " (inlined)";
    return text;
}

std::string to_string(const activity& a) {
    std::string text = fmt::format("{} ({}), state {}", a.id, a.name, a.state);
    if (!a.wait_channel.empty())
        text += ", waits in " + a.wait_channel;
    for (const auto& frame : a.frames)
        text += "\n  " + to_string(frame);
    return text;
}

const char* to_string(cause c) noexcept {
    switch (c) {
    case cause::returned:
        return "returned";
    case cause::exited:
        return "exited";
    case cause::raised:
        return "raised";
    case cause::signaled:
        return "signaled";
    case cause::stopped:
        return "stopped";
    case cause::killed:
        return "killed";
    case cause::oom_killed:
        return "oom_killed";
    case cause::lost:
        return "lost";
    case cause::unkillable:
        return "unkillable";
    case cause::not_started:
        return "not_started";
    case cause::timed_out:
        return "timed_out";
    case cause::output_limit:
        return "output_limit";
    case cause::host_lost:
        return "host_lost";
    }
    return "?";
}

std::string outcome::last_words() const { return base::last_words(work_.merges ? out : err); }

bool outcome::has_result() const noexcept { return result_.bytes && !result_.bytes->type.empty(); }

const std::vector<std::byte>& outcome::result_cbor(std::string_view type) const {
    if (work_.is_command)
        throw result_error(fmt::format("worker {} has no result: it is a command", index));
    if (has_result()) {
        if (result_.bytes->type == type)
            return result_.bytes->cbor;
        throw result_error(fmt::format("worker {} returned {}, not {}", index,
                                       base::demangle_foreign(result_.bytes->type),
                                       base::demangle(std::string(type).c_str())));
    }
    if (cause == cohort::cause::returned && !work_.note.empty())
        throw result_error(fmt::format("worker {} has no result: {}", index, work_.note));
    if (result_.bytes || cause == cohort::cause::returned)
        throw result_error(
            fmt::format("worker {} has no result: its function returned void", index));
    throw result_error(fmt::format("worker {} has no result: its function did not return ({}, {})",
                                   index, to_string(cause), to_string(status)));
}

bool report::success() const noexcept {
    return std::all_of(outcomes.begin(), outcomes.end(),
                       [](const outcome& o) { return o.success(); });
}

namespace {

std::string time_text(std::chrono::steady_clock::duration d) {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(d).count());
}

std::string memory_text(const outcome& o) {
    const long bytes = detail::outcome_access::has_parents_memory(o) ? 0 : o.usage.max_rss;
    return bytes > 0 ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0))
                     : "-";
}

/// Enough of a text for one line: its first line, at most `limit` bytes, cut between characters.
std::string first_line(std::string_view text, std::size_t limit = 200) {
    const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(begin);
    const auto line = text.substr(0, text.find_first_of("\r\n"));
    std::size_t end = std::min(line.size(), limit);
    while (end < line.size() && end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
        --end;
    return std::string(line.substr(0, end)) + (end < text.size() ? " ..." : "");
}

/// "attempt 2" after `before`; empty in the first attempt.
std::string attempt_text(std::string_view before, const outcome& o) {
    return o.attempt == 0 ? std::string() : fmt::format("{}attempt {}", before, o.attempt);
}

/// The text after cause and status: the error, the note, whether it was the first failure.
std::string remark(const outcome& o) {
    std::string text;
    if (o.error)
        text = first_line(to_string(*o.error));
    if (!o.note().empty())
        text += (text.empty() ? "" : "; ") + first_line(o.note());
    if (o.first_failure)
        text = text.empty() ? "first failure" : "first failure: " + text;
    return text;
}

constexpr std::size_t column_count = 7;
using row = std::array<std::string, column_count>;

row row_of(const outcome& o) {
    return {std::to_string(o.index), o.host,
            std::to_string(o.pid),   std::string(to_string(o.cause)),
            to_string(o.status),     time_text(o.ended - o.started),
            memory_text(o)};
}

/// One line of the table: numbers are aligned to the right, words to the left. A column that is
/// empty in all rows is left out.
std::string line_of(const row& cells, const std::array<std::size_t, column_count>& widths) {
    constexpr std::array<bool, column_count> right{true, false, true, false, false, true, true};
    std::string line;
    for (std::size_t i = 0; i < column_count; ++i) {
        if (widths[i] == 0)
            continue;
        line += right[i] ? fmt::format("{}{:>{}}", i ? "  " : "", cells[i], widths[i])
                         : fmt::format("{}{:<{}}", i ? "  " : "", cells[i], widths[i]);
    }
    return line;
}

}  // namespace

std::string to_string(const outcome& o) {
    std::string text =
        fmt::format("worker {} ({}{}pid {}{}): {}, {}, {}, {}", o.index, o.host,
                    o.host.empty() ? "" : ", ", o.pid, attempt_text(", ", o), to_string(o.cause),
                    to_string(o.status), time_text(o.ended - o.started), memory_text(o));
    if (const auto more = remark(o); !more.empty())
        text += ": " + more;
    return text;
}

std::string to_string(const report& r) {
    const bool on_hosts =
        std::ranges::any_of(r.outcomes, [](const outcome& o) { return !o.host.empty(); });
    std::vector<row> rows{
        {"index", on_hosts ? "host" : "", "pid", "cause", "status", "time", "memory"}};
    std::vector<std::string> remarks{{}};
    for (const auto& o : r.outcomes) {
        rows.push_back(row_of(o));
        const auto attempt = attempt_text("", o);
        const auto more = remark(o);
        remarks.push_back(attempt + (attempt.empty() || more.empty() ? "" : ": ") + more);
    }
    std::array<std::size_t, column_count> widths{};
    for (const auto& cells : rows)
        for (std::size_t i = 0; i < column_count; ++i)
            widths[i] = std::max(widths[i], cells[i].size());
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i != 0)
            text += '\n';
        text += line_of(rows[i], widths);
        if (!remarks[i].empty())
            text += "  " + remarks[i];
    }
    return text;
}

const char* to_string(stream s) noexcept {
    switch (s) {
    case stream::out:
        return "stdout";
    case stream::err:
        return "stderr";
    }
    return "?";
}

std::uint64_t captured::lost() const noexcept {
    if (lost_)
        return *lost_;
    const std::uint64_t kept = std::uint64_t{head.size()} + tail.size();
    return total > kept ? total - kept : 0;
}

std::string captured::text() const {
    std::string notice;
    if (const auto count = lost(); count > 0)
        notice = "\n... " + base::with_separators(count) + " bytes left out ...\n";
    std::string whole;
    whole.reserve(head.size() + notice.size() + tail.size());
    return whole.append(head).append(notice).append(tail);
}

namespace {

/// Copies one line of a part, without the loss before it.
void copy_line(const detail::run_part& part, std::size_t which, std::size_t offset,
               output_line& to) {
    const detail::line_run& run = *part.run;
    const auto& from = run.lines[part.first + which];
    to.index = run.index;
    to.attempt = run.attempt;
    if (run.host)
        to.host = *run.host;
    to.stream = run.from;
    to.time = run.time;
    to.text.assign(run.text, offset, from.size - from.ending);
    to.complete = from.complete;
}

}  // namespace

output_line detail::line_of(const run_part& part) {
    output_line first;
    copy_line(part, 0, part.offset, first);
    first.lost_before = part.lost.bytes;
    return first;
}

std::vector<output_line> detail::lines_of(const line_batch& delivered) {
    std::size_t count = 0;
    for (const run_part& some : delivered)
        count += some.count;
    std::vector<output_line> lines;
    lines.reserve(count);
    for (const run_part& some : delivered) {
        std::size_t offset = some.offset;
        for (std::size_t i = 0; i < some.count; ++i) {
            copy_line(some, i, offset, lines.emplace_back());
            offset += some.run->lines[some.first + i].size;
        }
        if (some.count > 0)
            lines[lines.size() - some.count].lost_before = some.lost.bytes;
    }
    return lines;
}

}  // namespace cohort
