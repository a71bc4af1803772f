// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "play.hpp"

#include <cohort/group.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace chaos {

/// Starts the group of a play.
/// @param logs  the directory for its logs, if it has some
asio::awaitable<cohort::group> start_play(play plan, std::string logs);

}  // namespace chaos
