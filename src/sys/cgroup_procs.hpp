// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <system_error>

namespace cohort::sys {

/// The list of processes of the cgroup whose directory is open here, to write: "0" moves the writer
/// into it. Numbered 3 or higher. See cgroups(7).
[[nodiscard]] unique_fd open_cgroup_procs(int directory, std::error_code& error) noexcept;

}  // namespace cohort::sys
