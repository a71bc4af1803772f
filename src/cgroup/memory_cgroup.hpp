// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::cgroups {

// The memory controller of control groups, version 2, by the directory of a cgroup. What its files
// say is bounded when read, and believed only as a whole: a line that is torn is none. Safe from
// any thread. See cgroups(7) and Documentation/admin-guide/cgroup-v2.rst of the kernel.

/// Whether the kernel can count the memory of each cgroup in this one.
[[nodiscard]] bool has_memory_controller(int directory) noexcept;

/// From now on it does. EBUSY: processes live in this one itself; from now on none can.
[[nodiscard]] std::error_code enable_memory_controller(int directory) noexcept;

/// What a cgroup tells of a kill by the kernel's out-of-memory killer. In bytes.
struct oom_kill {
    std::optional<std::uint64_t> limit;  // of the nearest cgroup that has one, this one or above
    std::optional<std::uint64_t> peak;   // of this one's memory (Linux 5.19)

    friend bool operator==(const oom_kill&, const oom_kill&) = default;
};

/// Whether that killer took a process in this cgroup, or below it. Empty: none, or it can't be
/// told. Does not wait.
[[nodiscard]] std::optional<oom_kill> find_oom_kill(int directory) noexcept;

/// "killed by the kernel's out-of-memory killer: limit 64.0 MiB, peak 63.9 MiB"; what is not known
/// is left out.
[[nodiscard]] std::string to_string(const oom_kill& kill);

}  // namespace cohort::cgroups
