// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/runtime/runtime.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace cohort::loop {

template <class T>
void free_aside(T* last) noexcept {
    runtime* const own = engine::is_this_thread() ? runtime::own() : nullptr;
    if (!own || is_small(*last))
        return delete last;
    try {
        std::shared_ptr<const void> object(last);
        own->freeing().run([object = std::move(object)]() mutable { object.reset(); }, [] {});
    } catch (const std::exception&) {
        // There is no memory: it was destroyed here.
    }
}

/// Makes an object for what workers leave. If the engine's thread is the last to let go of it,
/// another thread destroys it, because the kernel takes long to free much memory, and no deadline
/// is met meanwhile. What is small is destroyed at once, because a thread costs more; is_small()
/// says whether a `T` is.
template <class T, class... Arguments>
std::shared_ptr<T> make_freed_aside(Arguments&&... arguments) {
    T* const made = new T(std::forward<Arguments>(arguments)...);
    return {made, &free_aside<T>};
}

}  // namespace cohort::loop
