// SPDX-License-Identifier: BSL-1.0
#include <cohort/outcome.hpp>

#include "base/values/demangle.hpp"
#include "base/values/last_words.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cohort {

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

}  // namespace cohort
