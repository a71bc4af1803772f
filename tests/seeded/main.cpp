// SPDX-License-Identifier: BSL-1.0
// The programs of check.py have no workers, so they need nothing of the library.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
