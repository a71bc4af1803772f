// SPDX-License-Identifier: BSL-1.0
#include "output/lines/tagger.hpp"

#include "base/text/text.hpp"

#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace cohort::output {

namespace {

constexpr std::string_view reset = "\033[0m";
// What can change how a terminal shows later text: ESC, its form in one byte (CSI, also the second
// byte of U+009B) and SO, which changes the set of characters until SI.
constexpr std::string_view lasting = "\033\x9b\016";
constexpr std::string_view shift_in = "\017";
// Cyan, yellow, green, magenta, blue, red.
constexpr int colours[] = {36, 33, 32, 35, 34, 31};

std::string counted(std::uint64_t count, std::string_view unit) {
    return fmt::format("{} {}{}", base::with_separators(count), unit, count == 1 ? "" : "s");
}

}  // namespace

void tagger::write(std::string& into, const detail::run_part& lines, std::string_view tag,
                   std::chrono::system_clock::time_point wall) const {
    const detail::line_run& run = *lines.run;
    const std::string before = prefix(run.index, tag, wall);
    if (lines.lost != detail::loss{})
        fmt::format_to(std::back_inserter(into), "{}... {}, {} left out\n", before,
                       counted(lines.lost.lines, "line"), counted(lines.lost.bytes, "byte"));
    std::string_view text = std::string_view(run.text).substr(lines.offset);
    for (std::size_t i = lines.first; i < lines.first + lines.count; ++i) {
        const auto& line = run.lines[i];
        if (line.size == 0 && !line.complete)
            continue;
        into.append(before);
        write_line(into, text.substr(0, line.size), line.ending);
        text.remove_prefix(line.size);
    }
}

std::string tagger::prefix(int index, std::string_view tag,
                           std::chrono::system_clock::time_point wall) const {
    std::string text;
    if (style_.timestamps)
        text += base::time_of_day(wall) + ' ';
    if (style_.colours_tags && !tag.empty())
        fmt::format_to(std::back_inserter(text), "\033[{}m{}{}",
                       colours[static_cast<unsigned>(index) % std::size(colours)], tag, reset);
    else
        text += tag;
    return text;
}

void tagger::write_line(std::string& into, std::string_view line, std::size_t ending) const {
    const bool resets = style_.is_terminal && line.find_first_of(lasting) != std::string_view::npos;
    if (!resets && (ending == 1 || !style_.ends_lines)) {
        into.append(line);
        return;
    }
    const std::string_view text = line.substr(0, line.size() - ending);
    into.append(text);
    if (resets)
        into.append(reset);
    if (resets && line.find('\016') != std::string_view::npos)
        into.append(shift_in);
    into.append(style_.ends_lines ? std::string_view("\n") : line.substr(text.size()));
}

}  // namespace cohort::output
