// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/json.hpp"

#include <cohort/output.hpp>

#include <cstddef>

namespace cohort::base {

/// What was captured of a stream: head and tail within `limit` bytes. The bytes that do not fit are
/// counted as lost.
base::json json_of(const captured& stream, std::size_t limit);
/// What json_of() wrote, also by another version.
captured captured_in(const base::json& object);

}  // namespace cohort::base
