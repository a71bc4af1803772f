// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "record/control.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace cohort::registry {

/// The argv[1] of a function worker: which descriptor is its control file. Or of the fork server:
/// which is its connection.
struct mark {
    enum class what { worker, server };
    int fd = -1;
    ino_t inode = 0;
    what names = what::worker;

    friend bool operator==(const mark&, const mark&) = default;
};

/// "--cohort-worker=60:123456"
std::string to_string(const mark& m);
/// Empty for anything that is not exactly such an argument, and for the standard streams.
std::optional<mark> parse_mark(std::string_view argument) noexcept;
/// The order in the control file, if the descriptor is a memory file with that inode and our magic.
std::optional<record::control_order> read_order(const mark& m) noexcept;

/// It begins like one: then no other meaning of the argument is in question.
bool looks_like_mark(std::string_view argument) noexcept;
/// The descriptor is what the mark says, and was made by this process' own effective user or by
/// root. Not in a process that exec may have given rights which its caller has not (AT_SECURE).
bool holds(const mark& m) noexcept;

/// This process was started as a function worker, or as the fork server: argv[1] in
/// /proc/self/cmdline is a mark that holds. Looked up once; true also before main and in a program
/// that never calls worker_main.
bool is_worker_process() noexcept;
/// worker_main has taken over in this worker.
bool worker_main_reached() noexcept;
void note_worker_main() noexcept;

}  // namespace cohort::registry
