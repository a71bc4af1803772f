// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cohort::test {

/// A temporary directory for one test case, removed with its content.
class scratch_directory {
public:
    scratch_directory();
    /// In a directory that is there.
    explicit scratch_directory(const std::string& place);
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory();

    const std::string& path() const noexcept { return path_; }
    /// The path of a file in it.
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    /// Lets all users find the directory, and do in it what `more` says beside that.
    void open_to_all(std::filesystem::perms more = {}) const;
    /// Writes a file and returns its path; `mode` as for chmod.
    std::string write(std::string_view name, std::string_view text, unsigned mode = 0644) const;

private:
    std::string path_;
};

/// The whole file; empty when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace cohort::test
