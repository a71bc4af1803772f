// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <string_view>

namespace cohort::test {

/// ThreadSanitizer supports no new threads after a fork of a program with threads, so a forked copy
/// of such a program can't have groups of its own.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
/// AddressSanitizer and UndefinedBehaviorSanitizer need /proc, because the leak check reads it, and
/// free descriptors, because they probe objects by them. A case can't take these from a program.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
/// How often a case does something: `whole` with --long, else and under a sanitizer `less`. A few
/// cases would else take half of the time of all.
inline int how_many(int whole, int less) {
    static const bool is_long = std::getenv("COHORT_TEST_LONG") != nullptr;
    return is_long && !under_asan && !under_tsan ? whole : less;
}
/// Whether a worker that is a forked copy can have groups of its own. Under the sanitizers of GCC
/// 12 it can't, because a group needs threads: ThreadSanitizer refuses new threads, and
/// AddressSanitizer leaves its own allocator locked if another thread held the lock at the fork.
inline constexpr bool groups_in_copies = !under_tsan && !under_asan;
inline constexpr auto asan_needs_it = "AddressSanitizer needs it itself";
inline constexpr auto sanitizer_needs_memory =
    "a sanitizer takes more memory than there is to limit";
inline constexpr auto allocator_is_locked =
    "GCC 12's sanitizers leave their own allocator locked in a copy";
inline constexpr auto no_threads_in_copies =
    "TSan supports no new threads after a fork of a program with threads";

/// Whether TSan has made a temporary file of this name. TSan makes and removes one in each process
/// before its main, so a process that is killed there leaves one.
inline bool is_tsan_file(std::string_view name) { return name.starts_with("tsan.rodata."); }

}  // namespace cohort::test
