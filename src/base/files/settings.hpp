// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/sharing.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace cohort::base {

/// A size for people: "96 B", "4.0 KiB", "1.5 GiB".
std::string size_text(std::size_t bytes);

/// Throws a sharing_error whose text names the limit that was met, as far as the error says which,
/// and the ways out.
/// @param what  the thing that was not made: "shared array of 4.0 GiB"
[[noreturn]] void refuse(const std::string& what, std::error_code why);
/// Throws a sharing_error whose text is `what` and `reason`.
[[noreturn]] void refuse(const std::string& what, int error, const std::string& reason);

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
