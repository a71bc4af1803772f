// SPDX-License-Identifier: BSL-1.0
#include "base/files/settings.hpp"

#include "base/files/limits.hpp"
#include "base/files/named_file.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <random>

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
