// SPDX-License-Identifier: BSL-1.0
#pragma once

// Marks the symbols that the shared library exports. All others are hidden.
#define COHORT_API __attribute__((visibility("default")))

#if __cplusplus < 202002L
#error "cohort: needs C++20: compile with -std=c++20 or later"
#endif

#if !defined(__cpp_exceptions)
#error "cohort: needs exceptions, because failures arrive as such: compile without -fno-exceptions"
#endif

#if !defined(__GXX_RTTI) && !defined(__cpp_rtti)
#error "cohort: needs RTTI, because results and errors carry their types: compile without -fno-rtti"
#endif
