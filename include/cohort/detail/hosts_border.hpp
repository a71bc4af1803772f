// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/plan.hpp>

#include <memory>
#include <string>
#include <utility>
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

/// Some hosts of those that were reached together, or all. Lets them go when the last handle of
/// them is gone, and the last group on them has ended.
class COHORT_API hosts_owner final : public remote_place {
public:
    /// All of them. They may not be reached yet.
    explicit hosts_owner(hosts_ref hosts) noexcept : hosts_(std::move(hosts)) {}
    /// Those that live, of others.
    explicit hosts_owner(std::shared_ptr<const hosts_owner> of);
    ~hosts_owner() override;

    const hosts_ref& state() const noexcept { return hosts_; }
    std::vector<std::string> names() const;
    std::vector<std::string> alive() const;
    std::vector<std::string> lost() const;
    int port() const noexcept;

    int size() const override { return static_cast<int>(members().size()); }
    std::shared_ptr<group_state> make_group(spawn_plan plan) const override;

private:
    /// Places among those that were reached together.
    std::vector<int> members() const;

    hosts_ref hosts_;
    std::shared_ptr<const hosts_owner> of_;  // null: this is for all, and lets them go
    std::vector<int> members_;
};

}  // namespace cohort::detail::inline v0_1
