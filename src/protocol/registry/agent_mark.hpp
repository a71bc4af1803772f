// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string_view>

namespace cohort::protocol {

/// argv[1] of an agent, whose standard input and output are its link to the origin.
inline constexpr char agent_argument[] = "--cohort-agent";

/// Whether standard input and output can be a link. Not where a person has typed the argument, nor
/// where exec may have given this process rights that its caller does not have.
bool may_be_agent() noexcept;

/// Is the agent of this host until the link ends. Its body stands in src/hosts/agent.
[[noreturn]] void run_agent() noexcept;

}  // namespace cohort::protocol
