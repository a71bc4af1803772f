// SPDX-License-Identifier: BSL-1.0
// For the guardian's program, which has no C library: see main.cpp.
#pragma once

#include <cstdint>

namespace cohort::start {

/// Writes a text without its NUL. @return the place behind it; so do the others
inline char* write_text(char* to, const char* text) {
    while (*text != 0)
        *to++ = *text++;
    return to;
}

inline char* write_decimal(char* to, unsigned number) {
    char digits[10];
    int count = 0;
    do
        digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

/// Writes the lowest 4 * `count` bits as `count` hexadecimal digits.
inline char* write_hexadecimal(char* to, std::uint64_t number, int count) {
    while (count > 0)
        *to++ = "0123456789abcdef"[number >> 4 * --count & 15];
    return to;
}

inline bool begins_with(const char* text, const char* prefix) {
    while (*prefix != 0)
        if (*text++ != *prefix++)
            return false;
    return true;
}

}  // namespace cohort::start
