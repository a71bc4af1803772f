// SPDX-License-Identifier: BSL-1.0
#include "output/lines/splitter.hpp"

#include "base/text/text.hpp"
#include "base/values/quantity.hpp"
#include "output/routes/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace cohort::output {

void line_formatter::format(const detail::line_batch& batch, std::string& into) {
    for (const auto& part : batch) {
        if (is_mid_line_ && part.lost != detail::loss{})
            into += '\n';  // the loss gets a line of its own
        const auto found = tags_.find({part.run->index, part.run->from});
        tagger_.write(into, part,
                      found == tags_.end() ? std::string()
                                           : at_attempt(found->second, part.run->attempt),
                      part.run->wall);
        if (!into.empty())
            is_mid_line_ = !ends_lines_ && into.back() != '\n';
    }
}

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

namespace {

constexpr auto npos = std::string_view::npos;
/// The size of a line has 32 bits.
constexpr std::size_t largest_longest = std::size_t{1} << 31;

}  // namespace

splitter::splitter(settings s)
    : longest_(std::clamp(s.longest, std::size_t{1}, largest_longest)), is_screen_(s.is_screen) {}

void splitter::feed(std::string_view bytes, detail::line_run& into) {
    if (is_screen_ && (restarts_ || bytes.find('\r') != npos))
        feed_screen(bytes, into);
    else
        feed_bytes(bytes, into);
}

// Where a line is cut, its bytes stay as they are. So whole lines are copied at once, and only the
// table of lines knows of the cuts.
void splitter::feed_bytes(std::string_view bytes, detail::line_run& into) {
    if (!held_.empty()) {
        const std::size_t newline = bytes.find('\n');
        if (newline == npos)
            return hold(bytes, into);
        const std::string_view rest_of_line = bytes.substr(0, newline + 1);
        held_.append(rest_of_line);
        add_line(held_, into.lines);
        into.text.append(held_);
        held_.clear();
        bytes.remove_prefix(rest_of_line.size());
    }
    std::size_t begin = 0;
    for (std::size_t newline = 0; (newline = bytes.find('\n', begin)) != npos; begin = newline + 1)
        add_line(bytes.substr(begin, newline + 1 - begin), into.lines);
    into.text.append(bytes.substr(0, begin));
    hold(bytes.substr(begin), into);
}

void splitter::feed_screen(std::string_view bytes, detail::line_run& into) {
    while (!bytes.empty()) {
        const std::size_t newline = bytes.find('\n');
        draw(bytes.substr(0, newline), into);
        if (newline == npos)
            return;
        held_.append(restarts_ ? "\r\n" : "\n");
        add_line(held_, into.lines);
        into.text.append(held_);
        held_.clear();
        restarts_ = false;
        bytes.remove_prefix(newline + 1);
    }
}

/// Takes a part of a line on a screen.
void splitter::draw(std::string_view part, detail::line_run& into) {
    while (!part.empty()) {
        const std::size_t end = part.find('\r');
        const std::string_view shown = part.substr(0, end);
        if (restarts_ && !shown.empty()) {
            held_.clear();
            restarts_ = false;
        }
        hold(shown, into);
        if (end == npos)
            return;
        restarts_ = true;
        part.remove_prefix(end + 1);
    }
}

/// Takes a part of a line without its newline, and cuts off what is too long for any ending.
void splitter::hold(std::string_view part, detail::line_run& into) {
    held_.append(part);
    std::size_t cut = 0;
    // One character more may be the '\r' of a "\r\n".
    for (std::size_t left = held_.size();
         left > longest_ + 1 || (left == longest_ + 1 && held_.back() != '\r'); left -= longest_) {
        into.lines.push_back({static_cast<std::uint32_t>(longest_), 0, false});
        cut += longest_;
    }
    if (cut > 0) {
        into.text.append(held_, 0, cut);
        held_.erase(0, cut);
    }
}

/// Adds a line that ends with a newline to the table, and the cuts that it needs.
void splitter::add_line(std::string_view text, std::vector<line>& into) const {
    std::size_t size = text.size();
    const std::uint8_t ending = size > 1 && text[size - 2] == '\r' ? 2 : 1;
    for (; size - ending > longest_; size -= longest_)
        into.push_back({static_cast<std::uint32_t>(longest_), 0, false});
    into.push_back({static_cast<std::uint32_t>(size), ending, true});
}

void splitter::finish(detail::line_run& into) {
    // A '\r' that was held after `longest` characters is one character too many now.
    for (std::size_t left = held_.size(); left > 0;) {
        const std::size_t size = std::min(left, longest_);
        into.lines.push_back({static_cast<std::uint32_t>(size), 0, false});
        left -= size;
    }
    into.text.append(held_);
    held_.clear();
    restarts_ = false;
}

}  // namespace cohort::output
