// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reporter.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <csignal>
#include <sys/resource.h>

// Helpers for the tests of traces: they search stacks and crash workers.
namespace cohort::test {

/// Whether traces have files, lines, and the names of functions with internal linkage.
#ifdef COHORT_HAS_BACKTRACE
inline constexpr bool names_are_read = true;
#else
inline constexpr bool names_are_read = false;
#endif
inline constexpr auto no_names = "the library was built without libbacktrace";

/// Whether a sanitizer's signal handlers stay and report a crash in their own way.
inline constexpr bool crashes_are_sanitized = under_asan || under_tsan;
inline constexpr auto sanitizer_tells = "the sanitizer has handlers of its own";

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

/// The function that throws in most tests, and the line of its throw.
inline constexpr int line_of_throw = __LINE__ + 3;
[[gnu::noinline]] inline int load(int value) {
    if (value > 5)
        throw std::out_of_range("value " + std::to_string(value) + " is too large");
    return value;
}

/// The index of the newest call of a function with `name` in its name; -1: there is none.
inline int place_of(const std::vector<cohort::stack_frame>& frames, std::string_view name) {
    for (int i = static_cast<int>(frames.size()) - 1; i >= 0; --i)
        if (contains(frames[static_cast<std::size_t>(i)].function, name))
            return i;
    return -1;
}

/// All frames, one a line, for the message of a check that fails.
inline std::string all_of(const std::vector<cohort::stack_frame>& frames) {
    std::string text;
    for (const auto& frame : frames)
        text += "\n  " + cohort::to_string(frame);
    return text;
}

/// Runs a group of one worker. @return its outcome
template <class Work>
cohort::outcome end_of(Work work, cohort::options how = 1) {
    return ended(std::move(work), std::move(how)).outcomes.at(0);
}

/// Runs a group of one worker. @return the error that it raised
template <class Work>
cohort::error_record error_of(Work work, cohort::options how = 1) {
    return end_of(std::move(work), std::move(how)).error.value();
}

/// Prevents a core file. Call this in a worker that dies of a signal.
inline void leave_no_core() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace cohort::test
