// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/queue/end.hpp"

#include <cohort/detail/queue_end.hpp>

#include <cstddef>
#include <vector>

// The calls that block their thread: for functions of workers, which run no event loop.
namespace cohort::share {

using detail::queue_answer;

/// Takes at most `at_most` messages, and waits for the first.
queue_answer receive_some(end& from, std::vector<detail::queue_message>& into, std::size_t at_most,
                          const detail::patience& how_long);

/// @throws broken_queue
queue_answer send(end& to, outgoing& message, const detail::patience& how_long);

}  // namespace cohort::share
