// SPDX-License-Identifier: BSL-1.0
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>
