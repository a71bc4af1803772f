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

std::vector<output_line> detail::lines_of(const line_batch& delivered) {
    std::size_t count = 0;
    for (const run_part& some : delivered)
        count += some.count;
    std::vector<output_line> lines;
    lines.reserve(count);
    for (const run_part& some : delivered) {
        const line_run& run = *some.run;
        std::size_t offset = some.offset;
        for (std::size_t i = 0; i < some.count; ++i) {
            const line_run::line& from = run.lines[some.first + i];
            output_line& line = lines.emplace_back();
            line.index = run.index;
            line.attempt = run.attempt;
            line.stream = run.from;
            line.time = run.time;
            line.text.assign(run.text, offset, from.size - from.ending);
            line.complete = from.complete;
            line.lost_before = i == 0 ? some.lost.bytes : 0;
            offset += from.size;
        }
    }
    return lines;
}

}  // namespace cohort
