// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include "base/sys/raw_call.hpp"
#include "start/guardian/program/directory.hpp"
#include "start/guardian/program/text.hpp"

#include <fcntl.h>
#include <sys/syscall.h>

namespace cohort::start {

// Before Linux 6.9 a pidfd says nothing of a process group whose leader was reaped. The kernel
// says which processes are in a group, and in which session, only in /proc.

struct group_and_session {
    int group = 0;  // 0: unknown
    int session = 0;
    bool has_ended = false;  // all its threads have, and it waits to be reaped
};

/// Reads the text of /proc/PID/stat: "PID (NAME) STATE PARENT GROUP SESSION ...". The state is that
/// of the first thread. The last one frees memory, files and locks.
inline group_and_session parse_stat(const char* text, long length) {
    const char* const end = text + length;
    const char* at = end;
    while (at > text && *(at - 1) != ')')  // the last one, because the name may have others
        --at;
    if (at == text || end - at < 2)
        return {};
    const bool first_has_ended = at[1] == 'Z' || at[1] == 'X';
    at += 2;
    constexpr int count_of_threads = 16;     // the field's place after the state
    int numbers[count_of_threads + 1] = {};  // parent, group, session, ...
    int read = 0;
    for (; read <= count_of_threads; ++read) {
        while (at < end && *at == ' ')
            ++at;
        if (at < end && *at == '-')  // as of a process without a terminal
            ++at;
        if (at >= end || *at < '0' || *at > '9')
            break;
        for (; at < end && *at >= '0' && *at <= '9'; ++at)
            numbers[read] = static_cast<int>(static_cast<unsigned>(numbers[read]) * 10U +
                                             static_cast<unsigned>(*at - '0'));
    }
    if (read < 3)
        return {};
    return {numbers[1], numbers[2],
            first_has_ended && read > count_of_threads && numbers[count_of_threads] <= 1};
}

/// @param pid  as text
inline group_and_session read_stat(const char* pid) {
    char path[sizeof "/proc/4294967295/stat"];
    *write_text(write_text(write_text(path, "/proc/"), pid), "/stat") = 0;
    const auto file = static_cast<int>(
        base::raw_call(SYS_openat, AT_FDCWD, base::address(path), O_RDONLY | O_CLOEXEC));
    if (file < 0)
        return {};
    char text[256];
    const long length = base::raw_call(SYS_read, file, base::address(text), sizeof text);
    base::raw_call(SYS_close, file);
    return parse_stat(text, length < 0 ? 0 : length);
}

inline bool is_pid(const char* name) {
    int digits = 0;
    while (name[digits] >= '0' && name[digits] <= '9')
        ++digits;
    return digits > 0 && digits <= 10 && name[digits] == 0;
}

/// Calls `use` for each process that /proc shows, also for those that wait to be reaped.
template <class Use>
void for_each_process(Use use) {
    for_each_entry(
        AT_FDCWD,
        [&](const directory_entry& entry) {
            if (is_pid(entry.name))
                use(read_stat(entry.name));
            return true;
        },
        "/proc");
}

}  // namespace cohort::start
