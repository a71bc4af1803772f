// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

namespace cohort::base {

/// A value that is made at its first use and never destroyed, because threads of the library may
/// use it until the very end of the process. Not a local static: if another thread is just making
/// one during a fork, its guard stays taken in the forked copy for ever. Two threads may make the
/// value at once; one of the two is kept.
/// @param make  a lambda; each lambda has a value of its own
template <class Make>
const auto& leaked(Make make) {
    using T = decltype(make());
    static constinit std::atomic<const T*> kept{nullptr};
    if (const T* found = kept.load(std::memory_order_acquire); found != nullptr)
        return *found;
    const T* const made = new T(make());
    const T* first = nullptr;
    if (kept.compare_exchange_strong(first, made, std::memory_order_acq_rel))
        return *made;
    delete made;
    return *first;
}

}  // namespace cohort::base
