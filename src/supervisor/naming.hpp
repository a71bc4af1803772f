// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "trace/names.hpp"

#include <cohort/outcome.hpp>

#include <memory>

namespace cohort::supervisor {

/// It has frames without names, or causes that belong into its text.
bool needs_words(const outcome& worker) noexcept;
/// It with names for its frames, and with texts of all that is known of its end. What there is no
/// memory for stays as it is.
/// @param names  null: the texts are made with whatever names there are
std::shared_ptr<const outcome> in_words(const std::shared_ptr<const outcome>& worker,
                                        trace::names* names) noexcept;

}  // namespace cohort::supervisor
