// SPDX-License-Identifier: BSL-1.0
// The GPUs of a Slurm job, for the second try of a step that was refused because of them.
#include "hosts/launchers/slurm.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace cohort::multihost {
namespace {

constexpr std::size_t most_digits = 9;

int number_in(std::string_view digits) {
    int number = -1;
    if (digits.empty() || digits.size() > most_digits)
        return -1;
    const auto end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? number : -1;
}

/// Cuts off and returns what stands before the next comma outside of brackets.
std::string_view take_element(std::string_view& list, char opens, char closes) {
    std::size_t depth = 0;
    std::size_t at = 0;
    for (; at < list.size(); ++at) {
        if (list[at] == opens)
            ++depth;
        else if (list[at] == closes && depth > 0)
            --depth;
        else if (list[at] == ',' && depth == 0)
            break;
    }
    const auto element = list.substr(0, at);
    list.remove_prefix(at < list.size() ? at + 1 : at);
    return element;
}

/// Whether the digits are one of "1-3" or "07". Slurm pads with zeros up to the length of the first
/// number.
bool is_in_range(std::string_view range, std::string_view digits) {
    const auto dash = range.find('-');
    const auto first = range.substr(0, dash);
    const auto last = dash == range.npos ? first : range.substr(dash + 1);
    const int number = number_in(digits);
    const bool is_padded = digits.size() > 1 && digits.front() == '0';
    return number >= 0 && number_in(first) >= 0 && number >= number_in(first) &&
           number <= number_in(last) &&
           (digits.size() == first.size() || (digits.size() > first.size() && !is_padded));
}

/// Whether "rack[0-1]n[01-12]" names the node.
bool is_named_by(std::string_view element, std::string_view node) {
    const auto bracket = element.find('[');
    if (bracket == element.npos)
        return element == node;
    const auto end = element.find(']', bracket);
    if (end == element.npos || !node.starts_with(element.substr(0, bracket)))
        return false;
    node.remove_prefix(bracket);
    for (std::size_t length = 1; length <= std::min(node.size(), most_digits); ++length) {
        auto ranges = element.substr(bracket + 1, end - bracket - 1);
        while (!ranges.empty())
            if (is_in_range(take_element(ranges, '[', ']'), node.substr(0, length)) &&
                is_named_by(element.substr(end + 1), node.substr(length)))
                return true;
    }
    return false;
}

/// What stands behind "key=" among the words of a line; empty: nothing.
std::string_view value_of(std::string_view line, std::string_view key) {
    while (!line.empty()) {
        const auto word = line.substr(0, line.find(' '));
        line.remove_prefix(std::min(word.size() + 1, line.size()));
        if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
            return word.substr(key.size() + 1);
    }
    return {};
}

/// The GPUs in "gpu:a100:2(IDX:0,3),gpu:1(IDX:4)".
int gpus_in(std::string_view resources) {
    int sum = 0;
    while (!resources.empty()) {
        auto element = take_element(resources, '(', ')');
        element = element.substr(0, element.find('('));
        if (!element.starts_with("gpu:"))
            continue;
        if (const int count = number_in(element.substr(element.rfind(':') + 1));
            count > 0 && count <= 1024)
            sum += count;
    }
    return sum;
}

}  // namespace

bool names_node(std::string_view list, std::string_view node) {
    while (!list.empty())
        if (is_named_by(take_element(list, '[', ']'), node))
            return true;
    return false;
}

int gpus_on(std::string_view printed, std::string_view node) {
    while (!printed.empty()) {
        const auto line = printed.substr(0, printed.find('\n'));
        printed.remove_prefix(std::min(line.size() + 1, printed.size()));
        if (names_node(value_of(line, "Nodes"), node))
            return gpus_in(value_of(line, "GRES"));
    }
    return 0;
}

}  // namespace cohort::multihost
