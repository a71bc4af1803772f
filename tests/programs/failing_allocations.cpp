// SPDX-License-Identifier: BSL-1.0
// The operators of a program whose allocations fail when it says so.
#include "failing_allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace cohort::test {
namespace {

void* allocate(std::size_t size) {
    const bool fails = allocation_fails != nullptr && allocation_fails();
    void* const memory = fails ? nullptr : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

}  // namespace
}  // namespace cohort::test

void* operator new(std::size_t size) { return cohort::test::allocate(size); }
void* operator new[](std::size_t size) { return cohort::test::allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
