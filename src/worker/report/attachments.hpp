// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"

#include <cohort/detail/registration.hpp>

#include <span>
#include <system_error>
#include <vector>

namespace cohort::worker {

// The descriptors that come with the arguments of a function worker, and go with its result.

/// Makes them close-on-exec. Called before any code of the user's runs, because that may execute
/// programs.
void close_attachments_on_exec(const protocol::control_order& order) noexcept;

/// Takes the descriptors over from their numbers in the order. Once.
std::vector<detail::attachment> take_attachments(const protocol::control_order& order);

/// Sends the descriptors that a result holds to the application.
std::error_code send_attachments(const protocol::control_order& order,
                                 std::span<const detail::attachment> attachments);

}  // namespace cohort::worker
