// SPDX-License-Identifier: BSL-1.0
#include "descriptors.hpp"

#include "procfs.hpp"
#include "reports.hpp"

#include <asio.hpp>

#include <chrono>

namespace chaos {

namespace {

/// The library keeps these of the guardian and of the fork server, for all groups.
constexpr int most_kept_pidfds = 2;

bool is_of_group(const std::string& target) {
    return target == "anon_inode:[pidfd]" || target.starts_with("pipe:") ||
           target.ends_with(" (deleted)");
}

/// @return the targets of those that are left; empty: none
std::string left_since(const std::map<int, std::string>& before) {
    std::string left;
    int kept_pidfds = 0;
    for (const auto& [fd, target] : group_descriptors()) {
        const auto old = before.find(fd);
        const bool was_there = old != before.end() && old->second == target;
        if (was_there || (target == "anon_inode:[pidfd]" && ++kept_pidfds <= most_kept_pidfds))
            continue;
        left += " " + target;
    }
    return left;
}

}  // namespace

std::map<int, std::string> group_descriptors() {
    auto found = cohort::test::open_descriptors();
    std::erase_if(found, [](const auto& one) { return !is_of_group(one.second); });
    return found;
}

asio::awaitable<void> check_descriptors(std::map<int, std::string> before) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    auto left = left_since(before);
    for (; !left.empty() && std::chrono::steady_clock::now() < until; left = left_since(before)) {
        timer.expires_after(std::chrono::milliseconds(1));  // a close has no event
        co_await timer.async_wait(asio::use_awaitable);
    }
    if (!left.empty())
        tell_broken("descriptors are left:" + left);
}

}  // namespace chaos
