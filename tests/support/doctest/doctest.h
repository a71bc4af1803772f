// SPDX-License-Identifier: BSL-1.0
// doctest, whose cases are registered by main(), not before it. A worker is this program too, and
// registering 1,200 cases was half of the time in which one starts under a sanitizer.
// No include guard: the file that makes doctest's own functions may include it twice.
#pragma GCC system_header  // for the extension #include_next
#include_next <doctest/doctest.h>

// The linker puts what is in a section called like a C variable between two symbols of that name.
#undef DOCTEST_REGISTER_FUNCTION
#define DOCTEST_REGISTER_FUNCTION(global_prefix, f, decorators)                    \
    [[gnu::used, gnu::section("cohort_cases")]] static void (*DOCTEST_ANONYMOUS(   \
        DOCTEST_ANON_VAR_))() = [] {                                               \
        using namespace doctest::detail;                                           \
        regTest(TestCase(f, __FILE__, __LINE__,                                    \
                         doctest_detail_test_suite_ns::getCurrentTestSuite()) *    \
                decorators);                                                       \
    };
