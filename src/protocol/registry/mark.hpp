// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace cohort::protocol {

/// The argv[1] of a function worker names the descriptor of its control file. That of the fork
/// server names the descriptor of its connection.
struct mark {
    enum class what { worker, server };
    int fd = -1;
    ino_t inode = 0;
    what names = what::worker;

    friend bool operator==(const mark&, const mark&) = default;
};

/// "--cohort-worker=60:123456"
std::string to_string(const mark& m);
/// Empty for anything that is not exactly such an argument, and for a standard stream's descriptor.
std::optional<mark> parse_mark(std::string_view argument) noexcept;
/// The order in the control file, if the descriptor is a memory file with that inode and our magic.
std::optional<protocol::control_order> read_order(const mark& m) noexcept;

/// Whether the argument begins like a mark: the program then cannot mean anything else by it.
bool looks_like_mark(std::string_view argument) noexcept;
/// Whether the descriptor is what the mark says, and was made by this process' effective user or by
/// root. False where exec may have given the process rights that its caller does not have
/// (AT_SECURE), unless that caller is root.
bool holds(const mark& m) noexcept;

/// Whether this process was started as a function worker or as the fork server: argv[1] in
/// /proc/self/cmdline is a mark that matches its descriptor. Looked up once. Also true before main,
/// and in a program that never calls worker_main.
bool is_worker_process() noexcept;
/// Whether this process, or one that it is a copy of, has called worker_main.
bool worker_main_called() noexcept;
void note_worker_main_call() noexcept;
/// Whether worker_main has taken over in this worker.
bool worker_main_reached() noexcept;
void note_worker_main() noexcept;

/// argv[1] of an agent, whose standard input and output are its link to the origin.
inline constexpr char agent_argument[] = "--cohort-agent";

/// Whether standard input and output can be a link. Not where a person has typed the argument, nor
/// where exec may have given this process rights that its caller does not have.
bool may_be_agent() noexcept;

/// Is the agent of this host until the link ends. Its body stands in src/hosts/agent.
[[noreturn]] void run_agent() noexcept;

}  // namespace cohort::protocol
