// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reporter.hpp"
#include "watchdog.hpp"

#include <cohort/cohort.hpp>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

// Helpers for the tests of arrays that have names in /dev/shm.
namespace cohort::test {

/// Sets a strategy for the duration of a scope.
struct with_strategy {
    explicit with_strategy(sharing_strategy wanted) { set_sharing_strategy(wanted); }
    with_strategy(const with_strategy&) = delete;
    ~with_strategy() { set_sharing_strategy(sharing_strategy::file_descriptor); }
};

/// Skips the case where arrays can't have names.
inline bool names_are_denied() {
    const auto sharing = capabilities().sharing;
    if (!sharing.best())
        skip(sharing.reason);
    return !sharing.best();
}

/// The names that this program and its workers have drawn, not those of programs that run beside
/// it.
inline std::set<std::string> names() {
    static const std::string prefix = [] {
        const auto how = share_options().strategy(sharing_strategy::file_system);
        const auto name =
            shared_array<char>(how, 1).name();  // cohort.<user>.<session>.<pid>.<number>
        return name.substr(0, name.rfind('.', name.rfind('.') - 1) + 1);
    }();
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
        if (const auto name = entry.path().filename().string(); name.starts_with(prefix))
            found.insert(name);
    return found;
}

/// Returns when no name is left but those of `before`. Polls, because no event tells of it.
inline bool names_go(const std::set<std::string>& before) {
    const auto deadline = std::chrono::steady_clock::now() + generous_bound();
    while (names() != before && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    return names() == before;
}

}  // namespace cohort::test
