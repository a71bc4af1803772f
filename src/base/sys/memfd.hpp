// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include <sys/types.h>

namespace cohort::base {

/// A file in memory: close-on-exec, numbered 3 or higher even if the host has closed its stdio,
/// sealable, and not executable where the kernel can do that (MFD_NOEXEC_SEAL, Linux 6.3). `name`
/// is seen in /proc only. Its mode is 0600, because a process of another user that is handed a
/// read-only descriptor could else open the file for writing by /proc/self/fd.
[[nodiscard]] unique_fd make_memfd(const char* name, std::error_code& error) noexcept;
/// A file in huge pages of the default size, otherwise as by make_memfd(); may be executable.
[[nodiscard]] unique_fd make_huge_memfd(const char* name, std::error_code& error) noexcept;

/// A file in memory for a program that will be executed; not sealable. EACCES: this machine forbids
/// to execute such files (vm.memfd_noexec).
[[nodiscard]] unique_fd make_program_memfd(const char* name, std::error_code& error) noexcept;

// Where RLIMIT_FSIZE is met, the next three fail with EFBIG, and no signal comes.

/// Sets the length of a file.
[[nodiscard]] std::error_code set_length(int fd, std::size_t bytes) noexcept;
/// Gives a file its first `bytes` bytes, all zero, so that no later access lacks memory.
[[nodiscard]] std::error_code reserve(int fd, std::size_t bytes) noexcept;
/// Writes all of `bytes` at `offset`; the descriptor's own offset is neither used nor moved.
[[nodiscard]] std::error_code write_at(int fd, std::span<const std::byte> bytes,
                                       off_t offset) noexcept;

/// Reads from `offset` on, until `bytes` is full or the file ends. @return how many were read
[[nodiscard]] std::size_t read_at(int fd, std::span<std::byte> bytes, off_t offset,
                                  std::error_code& error) noexcept;

/// Adds F_SEAL_* seals. EPERM: the file has F_SEAL_SEAL already. EBUSY: F_SEAL_WRITE while the file
/// is mapped.
[[nodiscard]] std::error_code add_seals(int fd, int seals) noexcept;

/// The inode number by which a worker recognises its control file.
[[nodiscard]] ino_t inode(int fd, std::error_code& error) noexcept;

/// Whether both addresses are in one mapping of this process' memory, as /proc/self/maps lists it.
/// False where that can't be read. Async-signal-safe.
[[nodiscard]] bool share_mapping(std::uintptr_t one, std::uintptr_t other) noexcept;

}  // namespace cohort::base
