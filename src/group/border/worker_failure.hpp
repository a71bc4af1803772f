// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/services/services.hpp"

#include <cohort/detail/border.hpp>

#include <exception>
#include <memory>
#include <string>

// What a pool tells of its workers, each of which is a group of its own. The bodies stand in
// failure.cpp.
namespace cohort::detail::inline v0_1 {

/// A new exception for a worker that has died: process_raised_exception or
/// process_exited_exception. Not on the engine's thread.
/// @param end   of its group
/// @param slot  its place in the pool, which is the index that the exception tells
/// @param note  is added to the note of its outcome; empty: nothing
std::exception_ptr failure_of_worker(const group_end& end, int slot, const std::string& note);

/// A new process_raised_exception for a task whose worker lives on.
/// @param told  an outcome with the worker's pid and the task's error only
std::exception_ptr failure_of_task(const outcome& told, int slot);

/// The outcome with the names of the frames in its error. Only for work that runs on
/// runtime::symbolizing().
std::shared_ptr<const outcome> with_names(loop::runtime& runtime,
                                          const std::shared_ptr<const outcome>& told) noexcept;

}  // namespace cohort::detail::inline v0_1
