// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>

namespace cohort::sys {

/// A value that is made when it is first asked for and never destroyed: threads of the library may
/// ask until the very end of the process. Not a local static: the guard of one that another thread
/// is just making stays taken in a forked copy, for ever. Two threads may make it at once; one of
/// the values is kept.
/// @param make  a lambda: each has a value of its own
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

}  // namespace cohort::sys
