// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <system_error>

namespace cohort::base {

inline std::error_code last_error() noexcept { return {errno, std::system_category()}; }

/// Whether descriptors, memory or processes ran short: what failed may succeed later.
inline bool is_shortage(std::error_code error) noexcept {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system ||
           error == std::errc::not_enough_memory || error == std::errc::no_buffer_space ||
           error == std::errc::resource_unavailable_try_again;
}

}  // namespace cohort::base
