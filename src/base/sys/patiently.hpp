// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort::base {

/// How long patiently() waits for memory.
inline constexpr std::chrono::seconds longest_wait_for_memory{10};

/// There was no memory for longest_wait_for_memory. The library's threads have nobody to report it
/// to, so there it ends the program, with this text.
class no_memory final : public std::bad_alloc {
public:
    const char* what() const noexcept override {
        return "cohort: std::bad_alloc: no memory for 10 seconds, and no way to go on without it";
    }
};

/// One attempt to get memory after another. No event announces free memory, so it sleeps between.
class wait_for_memory {
public:
    /// Call it when an allocation has failed. @throws no_memory  this has lasted too long
    void go_on();

private:
    std::optional<std::chrono::steady_clock::time_point> until_;  // from the first failure on
};

/// Does `action` again and again while it throws std::bad_alloc, for what can't be reported to
/// anybody: an event that is not handled would leave a group without its end. A failed `action`
/// must have changed nothing. @throws no_memory
template <class Action>
decltype(auto) patiently(Action action) {
    wait_for_memory wait;
    for (;;) {
        try {
            return action();
        } catch (const std::bad_alloc&) {
            wait.go_on();
        }
    }
}

/// Allocates patiently. For containers and shared objects of the library's threads.
template <class T>
struct patient_allocator {
    using value_type = T;

    patient_allocator() noexcept = default;
    template <class Other>
    patient_allocator(const patient_allocator<Other>&) noexcept {}

    T* allocate(std::size_t count) {
        return patiently([count] { return std::allocator<T>().allocate(count); });
    }
    void deallocate(T* memory, std::size_t count) noexcept {
        std::allocator<T>().deallocate(memory, count);
    }
    template <class Other>
    bool operator==(const patient_allocator<Other>&) const noexcept {
        return true;
    }
};

/// Like std::make_shared, but allocates patiently.
template <class T, class... Args>
std::shared_ptr<T> make_shared_patiently(Args&&... args) {
    return std::allocate_shared<T>(patient_allocator<std::remove_cv_t<T>>(),
                                   std::forward<Args>(args)...);
}

}  // namespace cohort::base
