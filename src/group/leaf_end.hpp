// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/engine.hpp"
#include "start/leaves.hpp"

#include <functional>
#include <memory>

namespace cohort::group_room {

/// Kills what is left in a group's leaf and removes it, again and again until it is gone. On the
/// engine's thread.
/// @param until  when `then` is called at the latest; the leaf is tried further
/// @return true: it is gone, `then` is not called. Else it is called once.
bool end_leaf(engine::engine& loop, std::shared_ptr<start::leaf> ended, engine::time_point until,
              std::function<void()> then);

}  // namespace cohort::group_room
