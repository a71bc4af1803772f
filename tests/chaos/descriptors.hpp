// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <asio/awaitable.hpp>

#include <map>
#include <string>

namespace chaos {

/// This process's descriptors of what groups need: pidfds, pipes, and files without a name, such as
/// records of workers, the places of a batch and cgroups that were removed.
std::map<int, std::string> group_descriptors();

/// Called when all groups have ended and are dropped. Waits until no such descriptor is left that
/// was not there before, because the library closes some of a group after its end was told. If one
/// stays, the test is told.
asio::awaitable<void> check_descriptors(std::map<int, std::string> before);

}  // namespace chaos
