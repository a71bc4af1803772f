// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/sharing.hpp>

#include <cstdint>

namespace cohort::base {

// What a process hands down to its workers.

/// The number that the names of shared memory have in common, in all processes that come from one
/// program: 48 random bits, drawn at first use.
std::uint64_t session();
/// Takes over what the parent has: in a worker, before any code of the user's.
void inherit(std::uint64_t session, sharing_strategy strategy) noexcept;

/// Whether this process or its workers may have made names: only then the engine sweeps.
bool may_have_names() noexcept;
void note_names() noexcept;
/// Whether memory with a name may come from other processes. Its owner could truncate it, because
/// it bears no seals, so this process or its parent must have chosen such memory. A worker can't
/// know what its parent chooses after the start, and trusts it.
bool accepts_names() noexcept;
/// Whether inherit() was called.
bool this_is_a_worker() noexcept;

}  // namespace cohort::base
