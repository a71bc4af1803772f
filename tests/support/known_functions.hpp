// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <string>

// Functions that two programs have: the tests, and a program that their workers execute.
namespace cohort::test {

inline std::string where_it_is(int index, const std::string& word) {
    return word + " " + std::to_string(index) + " " +
           std::filesystem::read_symlink("/proc/self/exe").filename().string();
}

}  // namespace cohort::test
