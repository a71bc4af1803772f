// SPDX-License-Identifier: BSL-1.0
#include "group/starts/descriptor_limit.hpp"

#include "base/sys/descriptors.hpp"
#include "start/exec/exec.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::groups {

namespace {

detail::start_failure at_limit(std::string text) {
    return {{EMFILE, std::system_category()},
            std::move(text),
            -1,
            start::to_string(start::stage::limit)};
}

}  // namespace

std::optional<detail::start_failure> refuse_more_than_are_free(const wanted_descriptors& wanted) {
    const auto needed =
        wanted.for_each * static_cast<std::uint64_t>(wanted.workers) + wanted.for_group;
    const auto limit = base::descriptor_limit();
    const auto open = base::open_descriptors();
    if (!open || *open + needed <= limit)
        return std::nullopt;
    return at_limit(fmt::format("{} workers need {} descriptors, {} of {} are in use",
                                wanted.workers, needed, *open, limit));
}

std::optional<detail::start_failure> refuse_too_many_attachments(std::uint64_t first,
                                                                 std::uint64_t count) {
    const auto limit = base::descriptor_limit();
    if (first + count <= limit)
        return std::nullopt;
    return at_limit(
        fmt::format("a worker needs {} descriptors, {} of them for shared memory in its "
                    "arguments; it may have {}: raise RLIMIT_NOFILE, or use one "
                    "shared_arena for many small arrays",
                    first + count, count, limit));
}

}  // namespace cohort::groups
