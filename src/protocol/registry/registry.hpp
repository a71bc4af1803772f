// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control_file.hpp"

#include <cohort/detail/registration.hpp>

namespace cohort::protocol {

/// The key of a function of this program: the same in every process that runs it.
protocol::function_key key_of(const detail::function_node& node);

/// The key of a function by its name: the same in other programs that have the function.
protocol::function_key named_key_of(const detail::function_node& node);
bool is_named(const protocol::function_key& key) noexcept;

/// The registered function with this key; null when there is none. The key is only compared: an
/// address from a file is never followed.
const detail::function_node* find(const protocol::function_key& key);

}  // namespace cohort::protocol
