// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace cohort::start {

// The memory controller of control groups, version 2. Each function takes the open directory of a
// cgroup. Its files are read up to a limit; a longer file and an incomplete line are ignored. Safe
// from any thread. See cgroups(7) and Documentation/admin-guide/cgroup-v2.rst of the kernel.

/// Whether the kernel can count memory for each cgroup in this one.
[[nodiscard]] bool has_memory_controller(int directory) noexcept;

/// Lets the kernel count memory for each cgroup in this one. From then on no process can live in
/// this cgroup itself. EBUSY: one lives there already.
[[nodiscard]] std::error_code enable_memory_controller(int directory) noexcept;

/// What a cgroup's files say about a kill by the kernel's out-of-memory killer. In bytes.
struct oom_kill {
    std::optional<std::uint64_t> limit;  // memory.max, here or in the nearest cgroup above with one
    std::optional<std::uint64_t> peak;   // memory.peak of this cgroup (Linux 5.19)

    friend bool operator==(const oom_kill&, const oom_kill&) = default;
};

/// Whether the out-of-memory killer killed a process in this cgroup or below it. Empty: it did not,
/// or the files can't be read. Does not wait.
[[nodiscard]] std::optional<oom_kill> find_oom_kill(int directory) noexcept;

/// "killed by the kernel's out-of-memory killer: limit 64.0 MiB, peak 63.9 MiB"; what is not known
/// is left out.
[[nodiscard]] std::string to_string(const oom_kill& kill);

}  // namespace cohort::start
