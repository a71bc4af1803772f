// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/border.hpp>

#include <cstdint>
#include <optional>

namespace cohort::groups {

/// What a start takes of this process' descriptors.
struct wanted_descriptors {
    int workers = 0;  // that start together
    std::uint64_t for_each = 0;
    std::uint64_t for_group = 0;
};

/// Whether there are enough, so that a start that can't succeed begins nothing.
/// @return the failure, at stage "limit"; none: there are, or it can't be seen
std::optional<detail::start_failure> refuse_more_than_are_free(const wanted_descriptors& wanted);

/// The numbers of the attachments must exist in a worker, which has this process' limit.
/// @param first  the number of the first one
std::optional<detail::start_failure> refuse_too_many_attachments(std::uint64_t first,
                                                                 std::uint64_t count);

}  // namespace cohort::groups
