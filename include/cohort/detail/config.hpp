// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the shared library exports. Everything else in it is hidden.
#define COHORT_API __attribute__((visibility("default")))
