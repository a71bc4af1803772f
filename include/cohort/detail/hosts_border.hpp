// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>

#include <memory>
#include <string>
#include <vector>

// The border between the headers and the hosts of the compiled library. The bodies stand in
// src/hosts/border.
namespace cohort::detail::inline v0_1 {

struct launch_settings;

/// Hosts inside the library. Shared by the handles, by operations on them and by the engine.
class hosts_state;
using hosts_ref = std::shared_ptr<hosts_state>;

/// Makes the state, and asks the launcher for its commands. Starts nothing.
/// @throws what create_group() throws; std::logic_error  a launcher can't be used here
COHORT_API hosts_ref create_hosts(const launch_settings& how);
/// Reaches them. Completes with done, failed with `error`, or aborted.
COHORT_API void reach_hosts(const hosts_ref& hosts, receiver to);
/// Asks the agents to end. Completes with done when the last launcher has ended.
COHORT_API void leave_hosts(const hosts_ref& hosts, receiver to);
COHORT_API void cancel_in_hosts(const std::weak_ptr<hosts_state>& hosts, operation_id id) noexcept;
/// Nobody has a handle of them any more: lets them go.
COHORT_API void release_hosts(const hosts_ref& hosts) noexcept;
/// For a call on an empty handle. @throws std::logic_error  always
[[noreturn]] COHORT_API void throw_empty_hosts(const char* call);

COHORT_API std::vector<std::string> names_of(const hosts_state& hosts);
COHORT_API std::vector<std::string> alive_of(const hosts_state& hosts);
COHORT_API std::vector<std::string> lost_of(const hosts_state& hosts);
COHORT_API int port_of(const hosts_state& hosts) noexcept;

}  // namespace cohort::detail::inline v0_1
