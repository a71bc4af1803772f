// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort::test {

using allocation_test = bool (*)() noexcept;

/// Whether the allocation of the calling thread that is under way fails, in a program that is
/// linked with failing_allocations.cpp. Set by the program while it has one thread; null: none
/// fails.
inline constinit allocation_test allocation_fails = nullptr;

}  // namespace cohort::test
