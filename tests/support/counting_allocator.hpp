// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

namespace cohort::test {

/// Counts allocations: all of them (`given`), and those that are not taken back yet (`out`).
struct allocations {
    std::atomic<int> given{0};
    std::atomic<int> out{0};
    std::atomic<int> elsewhere{0};  // calls on another thread than the case's own
    std::thread::id home = std::this_thread::get_id();

    void note(int change) {
        out += change;
        if (std::this_thread::get_id() != home)
            ++elsewhere;
    }
};

template <class T>
class counting_allocator {
public:
    using value_type = T;
    explicit counting_allocator(allocations& counts) noexcept : counts_(&counts) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) noexcept : counts_(other.counts()) {}

    T* allocate(std::size_t n) {
        ++counts_->given;
        counts_->note(1);
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        counts_->note(-1);
        std::allocator<T>().deallocate(p, n);
    }
    allocations* counts() const noexcept { return counts_; }
    friend bool operator==(const counting_allocator&, const counting_allocator&) = default;

private:
    allocations* counts_;
};

}  // namespace cohort::test
