// SPDX-License-Identifier: BSL-1.0
#include "base/text/time_of_day.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>

namespace cohort::base {

namespace {

using namespace std::chrono;

/// A number of just these digits; -1: it is none.
int number_at(std::string_view text, std::size_t at, std::size_t digits) noexcept {
    int value = 0;
    const char* const end = text.data() + at + digits;
    for (const char c : text.substr(at, digits))
        if (c < '0' || c > '9')
            return -1;
    return std::from_chars(text.data() + at, end, value).ptr == end ? value : -1;
}

}  // namespace

std::string time_of_day(system_clock::time_point when) {
    const auto day = floor<days>(when);
    const year_month_day date(day);
    const hh_mm_ss time(floor<milliseconds>(when - day));
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       time.hours().count(), time.minutes().count(), time.seconds().count(),
                       time.subseconds().count());
}

system_clock::time_point time_of_day_in(std::string_view text) noexcept {
    constexpr std::string_view form = "0000-00-00T00:00:00.000Z";
    if (text.size() != form.size())
        return {};
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] != '0' && text[i] != form[i])
            return {};
    const auto at = [&](std::size_t place, std::size_t digits) {
        return number_at(text, place, digits);
    };
    const int month = at(5, 2);
    const int dom = at(8, 2);
    const int hour = at(11, 2);
    const int minute = at(14, 2);
    const int second = at(17, 2);
    const int thousandth = at(20, 3);
    if (at(0, 4) < 0 || month < 0 || dom < 0 || hour < 0 || minute < 0 || second < 0 ||
        thousandth < 0)
        return {};
    const year_month_day date(year(at(0, 4)), std::chrono::month(static_cast<unsigned>(month)),
                              day(static_cast<unsigned>(dom)));
    if (!date.ok())
        return {};
    return sys_days(date) + hours(hour) + minutes(minute) + seconds(second) +
           milliseconds(thousandth);
}

}  // namespace cohort::base
