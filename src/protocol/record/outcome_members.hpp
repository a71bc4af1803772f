// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/members.hpp"

#include <cohort/outcome.hpp>

#include <cstddef>

namespace cohort::protocol {

/// What is left out of the outcomes when a failure must be short. Each value also leaves out what
/// those before it do.
enum class brevity { whole, without_results, without_details, without_streams };

/// The longest text in an error without details, and of a stream, in bytes.
inline constexpr std::size_t brief_text = 1024;

/// {"code": 3} or {"signal": 11, "core": true}; null when the status is not known.
base::json json_of(const exit_status& status);
/// The status in an object's member "status".
exit_status status_at(const base::json& object);

base::json json_of(const error_record& error, brevity how);
/// How much of the head and the tail of a stream is written, in bytes.
std::size_t stream_limit(brevity how) noexcept;
base::json json_of(const outcome& one, brevity how);
outcome outcome_in(const base::json& object);

}  // namespace cohort::protocol
