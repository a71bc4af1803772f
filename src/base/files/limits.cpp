// SPDX-License-Identifier: BSL-1.0
#include "base/files/limits.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <cerrno>

namespace cohort::base {
namespace {

std::string limit_on_descriptors() {
    const auto limit = base::descriptor_limit();
    const auto open = base::open_descriptors();
    return fmt::format("{} of {} descriptors; raise RLIMIT_NOFILE, use one shared_arena for many "
                       "small arrays, or the file_system strategy",
                       open ? *open : limit, limit);
}

/// What the errno of a failed call means for shared memory; empty: nothing beyond its own text.
std::string limit_behind(int error) {
    switch (error) {
    case EMFILE:
        return limit_on_descriptors();
    case ENFILE:
        return "the whole machine's descriptors, fs.file-max";
    case ENOMEM:
        return "memory, or the mappings of this process (vm.max_map_count)";
    case ENOSPC:
        return "memory";
    case EFBIG:
        return "the largest size of a file, RLIMIT_FSIZE (ulimit -f), which counts for memory, too";
    default:
        return "";
    }
}

}  // namespace

std::string size_text(std::size_t bytes) {
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024)
        return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; value >= 1024; ++unit)
        value /= 1024;
    return fmt::format("{:.1f} {}", value, units[unit]);
}

void refuse(const std::string& what, std::error_code why) {
    const std::string limit = limit_behind(why.value());
    throw sharing_error(why, fmt::format("cohort: {}: {}{}{}", what, why.message(),
                                         limit.empty() ? "" : ": ", limit));
}

void refuse(const std::string& what, int error, const std::string& reason) {
    throw sharing_error({error, std::generic_category()},
                        fmt::format("cohort: {}: {}", what, reason));
}

}  // namespace cohort::base
