// SPDX-License-Identifier: BSL-1.0
#pragma once

// Marks the symbols that the shared library exports. All others are hidden.
#define COHORT_API __attribute__((visibility("default")))

#if !defined(__GXX_RTTI) && !defined(__cpp_rtti)
#error "cohort: needs RTTI, because results and errors carry their types: compile without -fno-rtti"
#endif
