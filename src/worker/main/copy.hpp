// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/record/control.hpp"
#include "protocol/registry/mark.hpp"

#include <cohort/detail/registration.hpp>

#include <functional>

namespace cohort::worker {

/// Runs a worker that is a copy of its parent. Output that the parent had not yet written is
/// dropped, because the parent will write it. When the worker calls exit, anywhere, the hooks and
/// destructors that it has registered itself run, not those that it was copied with.
[[noreturn]] void run_as_copy(const protocol::control_order& order, const protocol::mark& control,
                              const std::function<detail::function_result()>& body);

}  // namespace cohort::worker
