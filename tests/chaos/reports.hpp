// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "plan.hpp"

#include <cohort/group.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace chaos {

/// Tells the test, by the role pipe, that the library has broken a promise.
void tell_broken(const std::string& what);

/// Looks at what a group that has ended reports of its workers: each once, and in a batch those
/// that have started first.
asio::awaitable<void> check_reports(const group_plan& plan, cohort::group& group);

}  // namespace chaos
