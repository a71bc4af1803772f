// SPDX-License-Identifier: BSL-1.0
#include "output/routes/pattern.hpp"

#include "base/sys/host_name.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/random.h>
#include <unistd.h>

namespace cohort::output {

namespace {

/// The largest width and precision. fmt itself would take two thousand million.
constexpr int longest_number = 64;
constexpr std::size_t shown = 256;  // how much of a pattern stands in a sentence

/// A part of a pattern: text, or a name with its format.
struct piece {
    std::string_view text;
    std::optional<std::string_view> name;
    std::string_view format;
};

class parser {
public:
    parser(const char* setter, std::string_view pattern) : setter_(setter), pattern_(pattern) {}

    std::vector<piece> pieces() {
        std::vector<piece> found;
        for (std::size_t at = 0; at < pattern_.size();) {
            const std::size_t brace = std::min(pattern_.find_first_of("{}", at), pattern_.size());
            if (brace > at)
                found.push_back({pattern_.substr(at, brace - at), {}, {}});
            if (brace == pattern_.size())
                break;
            if (pattern_.substr(brace + 1, 1) == pattern_.substr(brace, 1)) {
                found.push_back({pattern_.substr(brace, 1), {}, {}});
                at = brace + 2;
            } else {
                if (pattern_[brace] == '}')
                    refuse(brace, "a '}' without its '{'; \"}}\" stands for a brace");
                found.push_back(name_at(brace));
                at = pattern_.find('}', brace) + 1;
            }
        }
        return found;
    }

private:
    [[noreturn]] void refuse(std::size_t at, std::string_view what) const {
        throw std::invalid_argument(fmt::format("cohort: {}: \"{}\" has at byte {} {}", setter_,
                                                base::clean_head(pattern_, shown), at + 1, what));
    }

    piece name_at(std::size_t brace) const {
        const std::size_t end = pattern_.find_first_of("{}", brace + 1);
        if (end == std::string_view::npos)
            refuse(brace, "a '{' without its '}'; \"{{\" stands for a brace");
        if (pattern_[end] == '{')
            refuse(end, "a '{' inside a name");
        const std::string_view inside = pattern_.substr(brace + 1, end - brace - 1);
        const std::size_t colon = std::min(inside.find(':'), inside.size());
        const piece found{
            {}, inside.substr(0, colon), inside.substr(std::min(colon + 1, inside.size()))};
        check(found, brace);
        return found;
    }

    void check(const piece& p, std::size_t at) const {
        if (*p.name == "index" || *p.name == "size" || *p.name == "attempt")
            check_format(p, at, 1);
        else if (*p.name == "group" || *p.name == "host")
            check_format(p, at, std::string_view("a"));
        else
            refuse(at, fmt::format("the name \"{}\", which is none of index, size, group, attempt "
                                   "and host",
                                   base::clean_head(*p.name, shown)));
    }

    template <class Value>
    void check_format(const piece& p, std::size_t at, const Value& value) const {
        int number = 0;
        for (const char c : p.format) {
            number = c < '0' || c > '9' ? 0 : number * 10 + (c - '0');
            if (number > longest_number)
                refuse(at, fmt::format("a width or precision above {}", longest_number));
        }
        // Numbers as characters would be control characters, NUL and '/'.
        if (p.format.ends_with('c'))
            refuse(at, "the format 'c'");
        try {
            (void)fmt::format(fmt::runtime(fmt::format("{{:{}}}", p.format)), value);
        } catch (const fmt::format_error& e) {
            refuse(at, fmt::format("the format \"{}\", which does not fit {}: {}",
                                   base::clean_head(p.format, shown), *p.name, e.what()));
        }
    }

    const char* setter_;
    std::string_view pattern_;
};

/// Stands on both sides of the format of an attempt that is not known yet. No path has it.
constexpr char attempt_mark = '\0';

template <class Value>
std::string formatted(std::string_view format, const Value& value) {
    return fmt::format(fmt::runtime(fmt::format("{{:{}}}", format)), value);
}

std::string safe_name(std::string_view format, std::string_view value) {
    constexpr std::string_view unsafe("/\0\n\r", 4);
    std::string clean(value);
    for (char& c : clean)
        if (unsafe.find(c) != std::string_view::npos)
            c = '_';
    // The format may have cut it off.
    std::string name = formatted(format, clean);
    if (name == "." || name == "..")
        name.assign(name.size(), '_');
    return name;
}

std::string expanded(const piece& p, const pattern_values& values) {
    if (!p.name)
        return std::string(p.text);
    if (p.name == "index")
        return formatted(p.format, values.index);
    if (p.name == "size")
        return formatted(p.format, values.size);
    if (p.name == "attempt" && !values.attempt)
        return fmt::format("{}{}{}", attempt_mark, p.format, attempt_mark);
    if (p.name == "attempt")
        return formatted(p.format, *values.attempt);
    return safe_name(p.format, p.name == "group" ? values.group : values.host);
}

}  // namespace

void check_pattern(const char* setter, std::string_view pattern) {
    (void)parser(setter, pattern).pieces();
}

std::string expand(std::string_view pattern, const pattern_values& values) {
    std::string text;
    for (const piece& p : parser("pattern", pattern).pieces())
        text += expanded(p, values);
    return text;
}

std::string at_attempt(std::string_view expanded, int attempt) {
    std::string text;
    for (;;) {
        const std::size_t mark = expanded.find(attempt_mark);
        text += expanded.substr(0, mark);
        if (mark == std::string_view::npos)
            return text;
        const std::size_t end = expanded.find(attempt_mark, mark + 1);
        text += formatted(expanded.substr(mark + 1, end - mark - 1), attempt);
        expanded.remove_prefix(end + 1);
    }
}

bool names_attempt(std::string_view expanded) noexcept {
    return expanded.find(attempt_mark) != std::string_view::npos;
}

namespace {

std::string random_letters() {
    constexpr std::size_t count = 8;
    unsigned char random[count] = {};
    (void)!::getrandom(random, sizeof random, 0);  // it can't fail for so few bytes
    std::string letters;
    for (const unsigned char each : random)
        letters += static_cast<char>('a' + each % 26);
    return letters;
}

}  // namespace

route_names names_for(std::string group) {
    std::error_code error;
    return {std::move(group), base::host_name(), random_letters(),
            std::filesystem::current_path(error).string()};
}

std::string run_id_of(const detail::log_settings& logs, const route_names& names) {
    pattern_values values;
    values.group = names.group;
    return logs.run_id.empty() ? expand("{group}", values) + "_" + names.random : logs.run_id;
}

}  // namespace cohort::output
