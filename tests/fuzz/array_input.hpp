// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "holds.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/detail/shared_memory.hpp>

#include <cstddef>
#include <string>
#include <vector>

// The inputs of array_fuzz: two bytes, then the description of an array.
namespace cohort::fuzz {

/// The type of an array's elements.
struct element {
    std::size_t bytes = 0;
    std::size_t alignment = 0;
    std::string dtype;
};
const std::vector<element>& elements();

/// What the receiver's shared_array<T> says of itself.
struct expected {
    const element& of;
    detail::memory_access access;
};

inline constexpr std::size_t head_size = 2;

/// Of three files those that come along, in any order and even twice: three digits of two bits, of
/// which 0 is none.
std::vector<detail::attachment> coming_along(bytes input,
                                             const std::vector<detail::attachment>& files);
expected expected_by(bytes input);

}  // namespace cohort::fuzz
