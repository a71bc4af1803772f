// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <map>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::output {

struct base_directory {
    std::shared_ptr<base::unique_fd> directory;  // null: AT_FDCWD
    std::error_code error;                       // why it can't be opened
};

/// The directories to which the paths of workers are relative. Each is opened once, because many
/// workers share one. They are for the moment in which the files of a group are opened; who needs
/// one for longer shares it.
class base_directories {
public:
    /// @param callers_directory  a descriptor, borrowed; -1: the directory of this process
    explicit base_directories(int callers_directory) noexcept : caller_(callers_directory) {}

    /// The base of `path`. An absolute path needs none, and the working directory of its worker may
    /// not be searchable for this program's user.
    /// @param working_directory  of the worker: absolute, relative to the caller's, or empty
    const base_directory& of(const std::string& working_directory, const std::string& path);

private:
    const int caller_;
    std::map<std::string, base_directory> opened_;  // by working directory
};

}  // namespace cohort::output
