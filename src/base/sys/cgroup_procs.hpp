// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/unique_fd.hpp"

#include <system_error>

namespace cohort::base {

/// Opens cgroup.procs in a cgroup's directory for writing: "0" moves the writer into that cgroup.
/// The descriptor is numbered 3 or higher. See cgroups(7).
[[nodiscard]] unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept;

}  // namespace cohort::base
