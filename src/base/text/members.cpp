// SPDX-License-Identifier: BSL-1.0
#include "base/text/members.hpp"

#include "base/text/text.hpp"

#include <charconv>
#include <cmath>

namespace cohort::base {
namespace {

constexpr std::size_t depth_limit = 64;
constexpr double first_second_after =
    4294967296.0;  // in 2106; until then a double holds microseconds

/// Whether a text is cheap to parse: not too deep, and no more than `most` values. A parser would
/// build every level of "[[[[..." before it finds no end, and every value of "[1,1,1,..." before
/// one of them is used.
bool is_modest(std::string_view text, std::size_t most) noexcept {
    std::size_t depth = 0;
    std::size_t values = 1;
    for (outline walk(text); walk.next();) {
        const char c = walk.character();
        if ((c == '[' || c == '{' || c == ',') && ++values > most)
            return false;
        if (c == '[' || c == '{') {
            if (++depth > depth_limit)
                return false;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return true;
}

std::optional<double> number_in(const json& value) {
    if (value.is_number())
        return value.get<double>();
    if (!value.is_string())
        return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
}

int digit_of(char c) noexcept {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

}  // namespace

json parsed(std::string_view text, std::size_t most) {
    if (!is_modest(text, most))
        return json(json::value_t::discarded);
    return json::parse(valid_utf8(text), nullptr, /*allow_exceptions=*/false);
}

std::string line_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_at(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_string())
        return {};
    return found->get<std::string>();
}

bool flag_at(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::optional<std::chrono::system_clock::time_point> time_at(const json& object, const char* name) {
    const auto found = object.find(name);
    const auto number = found == object.end() ? std::nullopt : number_in(*found);
    if (!number || !(*number >= 0 && *number < first_second_after))
        return std::nullopt;
    const double whole = std::floor(*number);
    const std::chrono::microseconds fraction(std::llround((*number - whole) * 1e6));
    return std::chrono::system_clock::time_point(
        std::chrono::seconds(static_cast<std::int64_t>(whole)) + fraction);
}

double seconds_of(std::chrono::system_clock::time_point time) noexcept {
    const auto since = std::chrono::round<std::chrono::microseconds>(time.time_since_epoch());
    return static_cast<double>(since.count()) / 1e6;
}

std::string hex_of(std::string_view bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const char c : bytes) {
        text += digits[static_cast<unsigned char>(c) >> 4];
        text += digits[static_cast<unsigned char>(c) & 15];
    }
    return text;
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
    if (digits.size() % 2 != 0)
        return std::nullopt;
    std::string bytes;
    bytes.reserve(digits.size() / 2);
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        const int high = digit_of(digits[i]), low = digit_of(digits[i + 1]);
        if (high < 0 || low < 0)
            return std::nullopt;
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

}  // namespace cohort::base
