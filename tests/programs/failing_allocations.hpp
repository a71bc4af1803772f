// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

// The operators of a program whose allocations fail when its allocation_fails() says so. Include it
// in one file.

namespace cohort::test {

/// Whether the allocation of the calling thread that is under way fails. Defined by the program.
bool allocation_fails() noexcept;

inline void* allocate(std::size_t size) {
    void* const memory = allocation_fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}

}  // namespace cohort::test

void* operator new(std::size_t size) { return cohort::test::allocate(size); }
void* operator new[](std::size_t size) { return cohort::test::allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
