// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

/// Ends the program, which libFuzzer counts as a finding, unless this is true.
#define HOLDS(fact) ::cohort::fuzz::holds(static_cast<bool>(fact), #fact, __LINE__)

/// Of libFuzzer: changes bytes at random. @return how many there are now
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t limit);

namespace cohort::fuzz {

using bytes = std::span<const std::byte>;

inline void holds(bool fact, const char* text, int line) {
    if (fact)
        return;
    std::fprintf(stderr, "line %d does not hold: %s\n", line, text);
    std::abort();
}

}  // namespace cohort::fuzz
