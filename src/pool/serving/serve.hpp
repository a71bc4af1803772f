// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/registration.hpp>

namespace cohort::pools {

/// The function that the workers of a pool run: makes the calls that come through its one
/// attachment, a socket, one after the other. It returns when the pool has closed the other end.
const detail::function_node& serving() noexcept;

}  // namespace cohort::pools
