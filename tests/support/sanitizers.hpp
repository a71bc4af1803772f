// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort_test {

/// ThreadSanitizer supports no new threads after a fork of a program with threads: what is a copy
/// of such a one can't have groups of its own.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
inline constexpr auto no_threads_in_copies =
    "TSan supports no new threads after a fork of a program with threads";

}  // namespace cohort_test
