// SPDX-License-Identifier: BSL-1.0
#include <cohort/output.hpp>

#include "base/values/quantity.hpp"

#include <cohort/detail/line_run.hpp>

#include <algorithm>
#include <utility>

namespace cohort {

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
