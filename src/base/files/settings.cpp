// SPDX-License-Identifier: BSL-1.0
#include "base/files/settings.hpp"

#include "base/files/named_file.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <random>

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

namespace cohort {
namespace base {
namespace {

constinit std::atomic<std::uint64_t> drawn{0};  // 0: not yet
constinit std::atomic<sharing_strategy> chosen{sharing_strategy::file_descriptor};
constinit std::atomic<bool> has_names{false};
constinit std::atomic<bool> is_worker{false};

constexpr std::uint64_t session_bits = (std::uint64_t{1} << 48) - 1;

}  // namespace

std::uint64_t session() {
    if (const auto known = drawn.load(); known != 0)
        return known;
    std::random_device random;
    const auto high = static_cast<std::uint64_t>(random()) << 32;
    const auto made = ((high | random()) & session_bits) | 1;
    std::uint64_t before = 0;
    return drawn.compare_exchange_strong(before, made) ? made : before;
}

void inherit(std::uint64_t session, sharing_strategy strategy) noexcept {
    drawn = session;
    chosen = strategy;
    has_names = strategy == sharing_strategy::file_system;
    is_worker = true;
}

bool may_have_names() noexcept { return has_names; }
void note_names() noexcept { has_names = true; }
bool this_is_a_worker() noexcept { return is_worker; }
bool accepts_names() noexcept { return has_names || is_worker; }

}  // namespace base

std::set<sharing_strategy> get_all_sharing_strategies() {
    std::set<sharing_strategy> all{sharing_strategy::file_descriptor};
    if (base::why_no_names().why.empty())
        all.insert(sharing_strategy::file_system);
    return all;
}

sharing_strategy get_sharing_strategy() noexcept { return base::chosen; }

void set_sharing_strategy(sharing_strategy strategy) {
    if (strategy == sharing_strategy::file_system) {
        if (const auto why = base::why_no_names().why; !why.empty())
            base::refuse("the sharing strategy file_system is not here", ENOTSUP, why);
        base::note_names();
    }
    base::chosen = strategy;
}

std::size_t sweep_shared_memory() { return base::sweep(base::prefix_of_user()).removed; }

std::string to_string(sharing_strategy strategy) {
    return strategy == sharing_strategy::file_system ? "file_system" : "file_descriptor";
}

}  // namespace cohort
