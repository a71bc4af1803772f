// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cohort/detail/registration.hpp>

#include <compare>
#include <optional>
#include <string>

#include <sys/types.h>

namespace cohort::base {

/// What an open file is recognised by in every process.
struct file_id {
    dev_t device = 0;
    ino_t inode = 0;

    auto operator<=>(const file_id&) const = default;
};
/// Empty: `descriptor` is not open.
std::optional<file_id> id_of(int descriptor) noexcept;

/// Makes an attachment that owns a descriptor. Its last owner closes the number. In a worker that
/// is a forked copy an attachment of the parent owns nothing (base::descriptor_table()).
/// @param name  of the library's file in /dev/shm; the last owner then removes the name if nobody
///              else uses the file. Never found out from the descriptor, because whoever sent that
///              could have names removed.
/// @throws std::bad_alloc  `descriptor` is unchanged then
detail::attachment own(base::unique_fd&& descriptor, std::string name = "");

/// own() for what another process has sent. The last close is in the background, unless the file is
/// memory, because it may wait for that process, see dispose().
detail::attachment own_received(base::unique_fd&& descriptor);

/// Lets the last owner close what own_received() has made, as for own(). Before another thread uses
/// the attachment.
void close_at_once(const detail::attachment& attachment) noexcept;

/// Adds the name to an attachment, made by own(), that has arrived without one. Thread-safe.
void give_name(const detail::attachment& attachment, const std::string& name);

/// Whether the number of an attachment, made by own(), means its file in this process.
bool is_open(const detail::attachment& attachment) noexcept;

}  // namespace cohort::base
